"""What people read: it fits a terminal of 80 columns, and says what numbers do not."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from unbag.cli.showing import show_candidates, show_metrics
from unbag.estimators.table_record import evaluation_record
from unbag.evaluation import Evaluation
from unbag.evaluation.results import Estimate


def shown(show, values):
    console = Console(file=StringIO(), width=80)
    show(values, console)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(
    ("value", "high", "note"),
    [(0.98, 0.99, ""), (0.98, 1.16, "interval leaves 0 to 1"), (1.1, 1.2, "outside 0 to 1")],
)
def test_an_interval_that_leaves_the_range_is_noted(value, high, note):
    estimate = Estimate(value, 0.8, high, 0.1)
    nothing = np.zeros(0)
    found = Evaluation({"auc": estimate}, *[nothing] * 3, [], [], nothing, "binary", 9, 90, 0.95)
    [line] = [line for line in shown(show_metrics, evaluation_record(found)) if "auc" in line]
    assert line.split("│")[4].strip() == note


def test_a_candidate_takes_one_line():
    number = {"value": 0.12345, "low": 0.1, "high": 0.2}
    candidate = {"name": "proportion_square", "risk": number, "error": number, "epochs": 100}
    lines = shown(show_candidates, [candidate])
    assert sum("proportion_square" in line and "100 epochs" in line for line in lines) == 1
    assert len(lines) == 6
