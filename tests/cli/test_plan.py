"""`unbag plan`, through typer."""

import pytest
from tests.support.calling import call
from typer.testing import CliRunner

from unbag.cli import app


@pytest.fixture
def run():
    return lambda *arguments: call("plan", *arguments)


def test_plan_answers_in_a_table_and_a_sentence(run, tmp_path):
    drawing = tmp_path / "plan.svg"
    result = run("--error", 0.01, "--bag-size", 20, "--hypotheses", 1000, "--plot", drawing)
    assert result.exit_code == 0, result.output
    assert "55 bags of 20" in " ".join(result.output.split())
    assert drawing.stat().st_size > 1000


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


@pytest.mark.parametrize("name", ["plan.foo", "plan", "nowhere/plan.png"])
def test_plan_refuses_a_picture_before_it_answers(name, tmp_path):
    asked = ["plan", "--bags", "500", "--bag-size", "20", "--vc", "3"]
    result = CliRunner().invoke(app, [*asked, "--plot", str(tmp_path / name)])
    assert_refused_picture(result, tmp_path / name)


def test_the_demo_refuses_a_picture_before_it_trains(monkeypatch, tmp_path):
    monkeypatch.setattr("unbag.cli.demo.run_bag_size", None)
    result = CliRunner().invoke(app, ["demo", "--plot", str(tmp_path / "demo.foo")])
    assert_refused_picture(result, tmp_path / "demo.foo")


def assert_refused_picture(result, path):
    assert result.exit_code == 1 and not result.stdout
    assert result.stderr.startswith(f"error: {path}")
