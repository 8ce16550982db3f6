"""The report: complete, self-contained, and rendered by a real browser."""

import numpy as np
import pyarrow as pa
import pytest
from tests.support.browser import CHROMIUM, complaints, outside_requests, unclosed_tags

from unbag.report import render_report
from unbag.tables import FitOptions, Roles, fit_table, scan_table
from unbag.tables.record import fit_record


def make_record(seed, *, name="x"):
    rng = np.random.default_rng(seed)
    group = rng.permutation(600) // 10
    x = rng.normal(size=600)
    rate = np.bincount(group, x > 0) / 10
    table = pa.table({"g": group, "rate": rate[group], name: x, "z": rng.normal(size=600)})
    found = scan_table(table, Roles("g", ("rate",)))
    options = FitOptions(models=("prior", "ridge", "logistic"))
    fitted = fit_table(found, options)
    return fit_record(found, fitted, options, command="unbag fit t.csv --bag g")


@pytest.fixture(scope="module")
def record():
    return make_record(0)


@pytest.fixture(scope="module")
def page(record):
    return render_report(record)


def test_it_says_what_a_reader_asks(page, record):
    error = record["evaluation"]["metrics"]["error"]
    wanted = ["600", "60", "error", f"{100 * error['value']:.1f} %", "unbag fit t.csv --bag g"]
    for words in [
        *wanted,
        "held-out",
        "seed",
        "torch",
        "ROC",
        "Which columns matter",
        "Calibration",
        "logistic",
        "always",
    ]:
        assert words in page
    assert page.count("<svg") == 6


def test_notes_of_metrics_are_shown(record):
    evaluation = record["evaluation"]
    auc = evaluation["metrics"]["auc"] | {"note": "interval leaves 0 to 1"}
    noted = evaluation | {"metrics": evaluation["metrics"] | {"auc": auc}}
    assert "interval leaves 0 to 1</td>" in render_report(record | {"evaluation": noted})


def test_equal_bags_have_one_size_and_a_bar_for_every_count(page, record):
    assert "rows in every bag" in page
    found = record["data"]["proportion_histogram"]["rate"]
    spread = record["data"]["proportions"]["rate"]
    assert len(found["counts"]) == round(10 * (spread["high"] - spread["low"])) + 1
    assert sum(found["counts"]) == 60 and len(found["edges"]) == len(found["counts"]) + 1


def test_it_needs_nothing_from_outside(page):
    assert outside_requests(page) == []


def test_the_check_for_requests_sees_them():
    for bad in (
        '<img src="http://a/b.png">',
        "<style>@import 'x';</style>",
        "url(x.png)",
        "<script>",
    ):
        assert outside_requests(bad)


def test_tags_are_balanced(page):
    assert unclosed_tags(page) == []


def test_names_of_columns_are_escaped():
    text = render_report(make_record(1, name="<script>alert(1)</script>"))
    assert "<script>" not in text


def test_unknown_numbers_do_not_break_it(record):
    evaluation = record["evaluation"]
    curve = {name: [None, None] for name in ("x", "y", "low", "high", "threshold")}
    metrics = {name: dict.fromkeys(values) for name, values in evaluation["metrics"].items()}
    broken = evaluation | {"metrics": metrics, "roc": [curve], "equivalent_labels": None}
    assert "not defined" in render_report(record | {"evaluation": broken})


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize(("width", "dark"), [(1100, False), (390, True)])
def test_a_browser_renders_it_without_complaint(page, tmp_path, width, dark):
    assert complaints(page, tmp_path, width=width, dark=dark) == []


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize(
    "fault",
    [
        "<script>console.error('x')</script>",
        "<img src='http://127.0.0.1:9/nothing.png'>",
        "<div style='width: 5000px'>x</div>",
        "<svg style='height: 1px'></svg>",
    ],
)
def test_the_browser_check_sees_faults(page, tmp_path, fault):
    assert complaints(page.replace("</body>", f"{fault}</body>"), tmp_path)
