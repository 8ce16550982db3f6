"""`unbag plan`, through typer."""

import pytest
from tests.support.calling import call


@pytest.fixture
def run():
    return lambda *arguments: call("plan", *arguments)


def test_plan_answers_in_a_table_and_a_sentence(run):
    result = run("--error", 0.01, "--bag-size", 20, "--hypotheses", 1000)
    assert result.exit_code == 0, result.output
    assert "55 bags of 20" in " ".join(result.output.split())


@pytest.mark.parametrize(
    "options",
    [
        ["--bags", 500, "--bag-size", 20, "--vc", 3],
        ["--instances", 5000, "--vc", 3],
        ["--instances", 5000, "--hypotheses", 9, "--best-error", 0.1],
        ["--error", 0.1, "--bag-size", 5, "--hypotheses", 9, "--best-error", 0.1],
    ],
)
def test_plan_answers_every_question(run, options):
    result = run(*options)
    assert result.exit_code == 0, result.output
    assert "ertified" in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--error", 0.01, "--bag-size", 20], "Give --hypotheses or --vc"),
        (["--bag-size", 20, "--vc", 3, "--hypotheses", 9], "--hypotheses or --vc, not both"),
        (["--vc", 3], "Give --bag-size, or --instances"),
        (["--bags", 0, "--bag-size", 20, "--vc", 3], "--bags must be a whole number"),
        (["--instances", 9, "--bags", 3, "--vc", 3], "--instances leaves"),
    ],
)
def test_plan_names_options_as_they_are_typed(run, options, words):
    result = run(*options)
    assert result.exit_code == 2
    said = " ".join(result.output.replace("│", " ").split())
    assert words in said and "`" not in said
