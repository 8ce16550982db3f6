"""Charts of metrics, from the points of their curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unbag.charts.chart import Chart, Kind, Series

__all__ = ["calibration_chart", "roc_chart"]

Curves = Mapping[str, Mapping[str, Any]]


def roc_chart(curves: Curves) -> Chart:
    """ROC curves by name, each with `x`, `y`, `low` and `high`; the band is pointwise."""
    labels = "false positive rate", "true positive rate"
    return Chart("ROC from bags", *labels, _series(curves, "line"), unit=True)


def calibration_chart(curves: Curves) -> Chart:
    """Share of positives against the mean score of each bin, with intervals."""
    labels = "mean score", "share of positives"
    return Chart("Calibration from bags", *labels, _series(curves, "points"), unit=True)


def _series(curves: Curves, kind: Kind) -> list[Series]:
    several = len(curves) > 1
    return [
        Series(c["x"], c["y"], c["low"], c["high"], name if several else "", kind)
        for name, c in curves.items()
    ]
