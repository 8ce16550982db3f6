"""The commands and the code of docs/tables.md run as they stand."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from unbag.cli import app

TEXT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
# The page's fits take half a minute; its words are run, with a small model.
QUICK = ["--model", "ridge"]


def test_the_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [block] = re.findall(r"```\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines():
        words = shlex.split(line)[1:]
        result = CliRunner().invoke(app, words + (QUICK if words[0] == "fit" else []))
        assert result.exit_code == 0, result.output


def test_the_code_runs():
    [block] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    quick = "unbag.estimators.FitOptions(models=('ridge',))"
    code = block.replace("roles)", f"roles, options={quick})").replace(
        "model.pred", "out = model.pred"
    )
    names: dict = {}
    exec("import unbag.estimators\n" + code, names)
    assert names["out"].num_rows == 1820
