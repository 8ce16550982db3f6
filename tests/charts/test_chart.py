"""Charts: complete as SVG, the same by matplotlib, and missing values left out."""

import re
import sys
import xml.etree.ElementTree as ET

import pytest

from unbag.charts import Chart, Series, roc_chart
from unbag.charts.svg import ticks
from unbag.errors import MissingExtraError

NAN = float("nan")
CHARTS = {
    "line": Chart(
        "a <b>",
        "x",
        "y",
        [Series([0, 1, 2], [1, NAN, 3], [0, 0, 2], [2, 2, 4], "n"), Series([], [])],
    ),
    "roc": roc_chart({"a": {"x": [0, 1], "y": [0, 1], "low": [0, NAN], "high": [1, None]}}),
    "bars": Chart("t", "x", "n", [Series([0, 1, 2], [3, 4], kind="bars")], whole=True),
    "intervals": Chart(
        "t",
        "x",
        "",
        [
            Series([1, None], [0, 1], [0, None], [2, None], "estimate", "intervals"),
            Series([1.5, 3], [0, 1], name="true", kind="points"),
        ],
        names=["a & b", "c"],
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_it_is_well_formed_and_every_mark_is_inside(name):
    root = ET.fromstring(CHARTS[name].svg())
    _, _, width, height = map(float, root.get("viewBox").split())
    for mark in root.iter():
        for place, most in (("cx", width), ("cy", height), ("x1", width), ("y1", height)):
            assert 0 <= float(mark.get(place, 0)) <= most
        for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", mark.get("d", "")):
            assert 0 <= float(x) <= width and 0 <= float(y) <= height


def test_it_names_its_parts():
    text = CHARTS["intervals"].svg()
    assert all(words in text for words in ("a &amp; b", "estimate", "true"))
    assert text.count("<circle") == 3  # the interval of None is left out


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
@pytest.mark.parametrize("name", CHARTS)
def test_it_saves_itself(tmp_path, name, ending):
    if ending != "svg":
        pytest.importorskip("matplotlib", reason="the extra unbag[plot] is not installed")
    assert CHARTS[name].save(tmp_path / f"t.{ending}").stat().st_size > 500


def test_matplotlib_draws_on_given_axes():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    assert CHARTS["intervals"].draw(axes) is axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a & b", "c"]


def test_a_missing_matplotlib_is_named_by_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    CHARTS["bars"].save(tmp_path / "t.svg")
    with pytest.raises(MissingExtraError, match=r"unbag\[plot\]"):
        CHARTS["bars"].save(tmp_path / "t.png")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0, 12345), (1e-4, 2e-4)])
def test_ticks_are_few_and_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 7
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in found)
