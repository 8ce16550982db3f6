"""What people read: it fits a terminal of 80 columns, and says what numbers do not."""

import json
from io import StringIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from tests.support.calling import good
from typer.testing import CliRunner

from unbag.cli import app
from unbag.cli.console_tables import show_candidates
from unbag.evaluation import Baseline, Estimate, Evaluation
from unbag.tables.fit import CandidateModel


@pytest.fixture
def console():
    return Console(file=StringIO(), width=80)


def lines_of(console):
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(
    ("value", "high", "note"),
    [(0.98, 0.99, ""), (0.98, 1.16, ""), (1.1, 1.2, "noise puts it above 1")],
)
def test_an_estimate_outside_its_range_is_noted(console, value, high, note):
    estimate = Estimate(value, 0.8, high, 0.1)
    nothing = np.zeros(0)
    about = ("binary", 9, 90, 0.95, Baseline("no", 0.5))
    estimates = {"error": estimate, "auc": estimate}
    found = Evaluation(estimates, *[nothing] * 3, [], [], nothing, *about)
    console.print(found)
    [line] = [line for line in lines_of(console) if "auc" in line]
    assert line.split("│")[4].strip() == note


def test_a_candidate_takes_one_line(console):
    risk = Estimate(0.12345, 0.1, 0.2, 0.02)
    show_candidates([CandidateModel("proportion_square", 0.25, risk)], console)
    lines = lines_of(console)
    assert sum("proportion_square" in line and "25 %" in line for line in lines) == 1
    assert len(lines) == 6


def test_a_column_that_numbers_rows_is_left_out_with_a_word_and_kept_on_request(tmp_path, rng):
    g = np.repeat(np.arange(40), 10)
    columns = {"row": rng.permutation(400), "g": g, "rate": (g % 5) / 10, "x": rng.normal(size=400)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    command = ["fit", str(tmp_path / "rows.parquet"), "--bag", "g", "--proportion", "rate"]
    for name, more, n_features in (("left out", [], 1), ("kept", ["--number", "row"], 2)):
        options = [*more, "--model", "ridge", "-o", str(tmp_path / name), "--json"]
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 0, result.output
        assert ("row looks like an id and is left out" in result.stderr) == (not more)
        assert json.loads(result.stdout)["data"]["features"] == n_features


def test_what_stands_in_square_brackets_is_shown(tmp_path, rng):
    g = np.repeat(np.arange(40), 10)
    labels = rng.integers(3, size=400)
    columns = {"g": g, "age [y]": rng.normal(size=400), "[/x]member": rng.normal(size=400)}
    for label in range(3):
        shares = (labels == label).reshape(40, 10).mean(axis=1)
        columns[f"[c]{label}"] = shares[g]
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    table, model = tmp_path / "rows.parquet", tmp_path / "n[a]"
    targets = [word for label in range(3) for word in ("--proportion", f"[c]{label}")]
    checked = good("check", table, "--bag", "g", *targets).output
    fitted = good("fit", table, "--bag", "g", *targets, "--model", "ridge", "-o", model).output
    evaluated = good("evaluate", model, table).output
    predicted = good("predict", model, table, "-o", tmp_path / "s[b].csv").output
    for output in (checked, fitted):
        assert all(name in output for name in ("age [y]", "[/x]member", "proportion of [c]0"))
    assert all("recall[[c]0]" in output for output in (fitted, evaluated))
    assert "n[a]" in fitted.replace("\n", "")
    assert "s[b].csv" in predicted.replace("\n", "")
