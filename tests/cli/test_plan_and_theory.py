"""The two commands, through typer."""

import pytest
import typer
from typer.testing import CliRunner

from unbag.cli.plan import plan
from unbag.cli.reproduce_theory import theory


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(plan)
    app.command()(theory)

    def call(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


def test_plan_answers_in_a_table_and_a_sentence(run, tmp_path):
    drawing = tmp_path / "plan.png"
    result = run("plan", "--error", 0.01, "--bag-size", 20, "--hypotheses", 1000, "--plot", drawing)
    assert result.exit_code == 0, result.output
    assert "55 bags of 20" in " ".join(result.output.split())
    assert drawing.stat().st_size > 1000


@pytest.mark.parametrize(
    "options",
    [
        ["--bags", 500, "--bag-size", 20, "--vc", 3],
        ["--instances", 5000, "--vc", 3],
        ["--instances", 5000, "--vc", 3, "--best-error", 0.1],
        ["--error", 0.1, "--bag-size", 5, "--hypotheses", 9, "--best-error", 0.1],
    ],
)
def test_plan_answers_every_question(run, options):
    result = run("plan", *options)
    assert result.exit_code == 0, result.output
    assert "ertified" in result.output


def test_plan_names_what_is_missing(run):
    result = run("plan", "--error", 0.01, "--bag-size", 20)
    assert result.exit_code == 2
    assert "n_hypotheses" in result.output


def test_theory_writes_and_shows_the_table(run, tmp_path):
    result = run("theory", "--quick", "--only", "eprm_blindness", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "pass" in result.output
    assert (tmp_path / "claims.md").exists()


def test_theory_names_an_unknown_experiment(run, tmp_path):
    result = run("theory", "--quick", "--only", "alchemy", "--out", tmp_path)
    assert result.exit_code == 2
    assert "alchemy" in result.output
