"""The page about a fitted table: everything in one file, nothing fetched, no script."""

from __future__ import annotations

from typing import Any

from unbag.charts import Chart, Series, calibration_chart, roc_chart
from unbag.report.templates import render_template

__all__ = ["render_report"]

METRICS = {
    "error": "Error: share of single rows predicted wrongly",
    "brier": "Brier score: mean squared difference of score and label",
    "auc": "AUC: chance that a positive row scores above a negative one",
    "log_loss": "Log loss of the scores",
    "balanced_error": "Balanced error: mean of the errors on the two classes",
    "precision": "Precision: share of predicted positives that are positive",
    "recall": "Recall: share of positives that are found",
    "specificity": "Specificity: share of negatives that are left alone",
    "f1": "F1: harmonic mean of precision and recall",
    "average_precision": "Average precision",
    "calibration_error": "Calibration error",
    "prior": "Share of positive labels",
}
CHECKS = {
    "dispersion": "Do proportions vary as those of random bags do?",
    "homogeneity": "Do bags hold the same kind of rows?",
    "one_value": "Do all numbers vary within bags?",
    "duplicates": "Is each row in one bag only?",
    "one_class": "Are there no more bags of one class than chance allows?",
    "rounding": "Are proportions whole counts?",
    "suppression": "Are small counts reported too?",
    "clipping": "Are extreme proportions reported as they are?",
    "size_drift": "Do large and small bags hold the same rows?",
}


def render_report(record: dict[str, Any]) -> str:
    """Make the page from what `unbag fit` recorded.

    Parameters
    ----------
    record : dict
        As in the ``fit.json`` of a model folder.

    Returns
    -------
    str
        HTML that needs no network, no script and no other file.
    """
    return render_template(
        "model.html.jinja",
        record=record,
        charts=charts_of(record),
        metrics={name: metric_words(name) for name in record["evaluation"]["metrics"]},
        questions=CHECKS,
        error=record["evaluation"]["metrics"]["error"],
    )


def metric_words(name: str) -> str:
    """What a metric is, and of which class or label.

    Examples
    --------
    >>> metric_words("recall[rate]")
    'Recall: share of positives that are found (rate)'
    """
    metric, _, output = name.partition("[")
    words = METRICS.get(metric, metric)
    return f"{words} ({output.removesuffix(']')})" if output else words


def charts_of(record: dict[str, Any]) -> dict[str, Any]:
    """Every chart of the page, as SVG."""
    data, evaluation = record["data"], record["evaluation"]
    names = list(data["proportions"])
    histograms = data["proportion_histogram"].items()
    charts = {
        "sizes": histogram_chart("Bag sizes", "rows in a bag", data["size_histogram"], whole=True),
        "proportions": [
            histogram_chart(f"Proportions: {name}", f"proportion of {name}", found)
            for name, found in histograms
        ],
        "roc": roc_chart(dict(zip(names, evaluation["roc"], strict=True))),
        "calibration": calibration_chart(dict(zip(names, evaluation["calibration"], strict=True))),
        "candidates": candidates_chart(record["candidates"]),
        "curves": curve_charts(record["candidates"]),
    }
    return {n: [c.svg() for c in v] if isinstance(v, list) else v.svg() for n, v in charts.items()}


def histogram_chart(
    title: str, label: str, found: dict[str, list[float]], *, whole: bool = False
) -> Chart:
    """Counts of bags between edges."""
    bars = Series(found["edges"], found["counts"], kind="bars")
    return Chart(title, label, "bags", [bars], whole=whole)


def candidates_chart(candidates: list[dict[str, Any]]) -> Chart:
    """Square risk of each candidate."""
    value, low, high = ([c["risk"][end] for c in candidates] for end in ("value", "low", "high"))
    risks = Series(value, range(len(candidates)), low, high, kind="intervals")
    names = [c["name"] for c in candidates]
    return Chart("Candidates", "square risk on held-out bags", "", [risks], names=names)


def curve_charts(candidates: list[dict[str, Any]]) -> list[Chart]:
    """Held-out risks in one chart; training losses, which differ in scale, in one each."""
    watched = [_curve_of(c, "held_out_risk") for c in candidates if "held_out_risk" in c["history"]]
    trained = [_curve_of(c, "loss") for c in candidates if "loss" in c["history"]]
    charts = [_over_epochs(watched, "square risk on held-out bags")] if watched else []
    return charts + [_over_epochs([line], f"training loss of {line.name}") for line in trained]


def _curve_of(candidate: dict[str, Any], measure: str) -> Series:
    values = candidate["history"][measure]
    return Series(range(1, len(values) + 1), values, name=candidate["name"])


def _over_epochs(lines: list[Series], title: str) -> Chart:
    return Chart(title, "epoch or tree", title, lines)
