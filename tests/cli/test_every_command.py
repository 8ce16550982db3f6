"""What every command has: examples in its help, an answer for machines, completion."""

import json
import os
import shlex
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import unbag
from unbag.cli import app
from unbag.cli.demo import demo

RUNNER = CliRunner()


GROUP = typer.main.get_command(app)
EVERY = {name: GROUP.get_command(None, name) for name in GROUP.list_commands(None)}


@pytest.mark.parametrize("name", EVERY)
def test_help_shows_examples_that_parse(name):
    """Each example names this command and only options it has."""
    lines = [line.strip() for line in EVERY[name].help.split("\n")]
    examples = [shlex.split(line) for line in lines if line.startswith("unbag ")]
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


def answer(*arguments):
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_plan_answers_in_json():
    found = answer("plan", "--error", 0.01, "--bag-size", 20, "--hypotheses", 1000, "--json")
    assert found["answer"]["n_bags"] == 55 and found["answer"] in found["table"]


def test_demo_answers_in_json(monkeypatch):
    monkeypatch.setitem(demo.__globals__, "BAG_SIZES", (20,))
    lines = answer("demo", "--epochs", 1, "--json")["lines"]
    assert {"ridge, closed form", "debiased_square"} <= {line["rule"] for line in lines}
    assert all(0 <= line["true_error"] <= 1 for line in lines)


@pytest.mark.parametrize(
    ("words", "wanted"), [("unbag ev", "evaluate"), ("unbag fit --prop", "--proportion")]
)
def test_the_shell_completes_commands_and_options(words, wanted, monkeypatch, capsys):
    monkeypatch.setitem(os.environ, "_UNBAG_COMPLETE", "complete_bash")
    monkeypatch.setitem(os.environ, "COMP_WORDS", words)
    monkeypatch.setitem(os.environ, "COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        app(prog_name="unbag")
    assert capsys.readouterr().out.split() == [wanted]


def test_the_version_is_said():
    assert RUNNER.invoke(app, ["--version"]).stdout == f"unbag {unbag.__version__}\n"


HEAVY = {"torch", "numpy", "matplotlib", "sklearn", "scipy", "pyarrow", "jinja2"}


@pytest.mark.parametrize("question", ["--version", "--help", *(f"{n} --help" for n in EVERY)])
def test_help_and_version_load_no_heavy_library(question):
    code = (
        "import sys; from unbag.cli import app\n"
        f"try: app({question.split()})\n"
        "except SystemExit: pass\n"
        f"heavy = {HEAVY} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reader_who_leaves_early_is_no_error():
    command = [sys.executable, "-c", "from unbag.cli import app; app()", "fit", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(4000)  # half of it, so that the next write is refused
        process.stdout.close()
        assert b"error" not in process.stderr.read()
