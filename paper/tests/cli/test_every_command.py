"""What every command of `unbag-paper` has: examples in its help, and an answer for machines."""

import json
import shlex

import pytest
import typer
from paper.tests.support.handmade import row
from typer.testing import CliRunner

from unbag_paper.cli import app
from unbag_paper.runs.rows import Store

GROUP = typer.main.get_command(app)
EVERY = {name: GROUP.get_command(None, name) for name in GROUP.list_commands(None)}


def test_these_are_the_commands():
    tables = {"mnist", "cifar", "figures", "all", "render", "merge"}
    assert set(EVERY) == tables | {"images", "theory", "report"}


@pytest.mark.parametrize("name", EVERY)
def test_help_shows_examples_that_parse(name):
    """Each example names this command and only options it has."""
    lines = [line.strip() for line in EVERY[name].help.split("\n")]
    examples = [shlex.split(line) for line in lines if line.startswith("unbag-paper ")]
    assert examples
    known = {
        word for option in EVERY[name].params for word in (*option.opts, *option.secondary_opts)
    }
    for example in examples:
        assert example[1] == name
        assert {word for word in example if word.startswith("-")} <= known


@pytest.mark.parametrize("name", EVERY)
def test_help_breaks_where_the_terminal_does(name):
    assert not [part for part in EVERY[name].help.split("\n\n") if "\n" in part]


@pytest.mark.parametrize("name", EVERY)
def test_every_command_can_answer_in_json(name):
    assert any("--json" in option.opts for option in EVERY[name].params)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments):
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_theory_answers_in_json(tmp_path):
    found = answer("theory", "--quick", "--only", "eprm_blindness", "--out", tmp_path)
    assert {claim["verdict"] for claim in found["claims"]} == {"pass"}


def test_theory_writes_and_shows_the_table(tmp_path):
    result = invoke("theory", "--quick", "--only", "eprm_blindness", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "claims hold, 0 fail as stated, 0 fail" in result.output
    assert (tmp_path / "claims.md").exists()


def test_theory_names_an_unknown_experiment(tmp_path):
    result = invoke("theory", "--quick", "--only", "alchemy", "--out", tmp_path)
    assert result.exit_code == 2
    assert "alchemy" in result.output


def test_merging_and_rendering_answer_in_json(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    Store(one).add([row(seed=0)])
    Store(two).add([row(seed=1)])
    merged = answer("merge", one, "--store", two)
    assert merged["new_rows"] == {str(one): 1}
    rendered = answer("render", "--models", "linear", "--store", two)
    assert rendered["rows"] == 2 and "mnist" in rendered["tables"] and not rendered["written"]
