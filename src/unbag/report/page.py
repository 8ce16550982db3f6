"""The page about a fitted table: everything in one file, nothing fetched, no script."""

from __future__ import annotations

from typing import Any

from unbag.report.charts import Line, bar_chart, interval_chart, line_chart
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
    return {
        "sizes": bar_chart(
            **data["size_histogram"],
            x_label="rows in a bag",
            y_label="bags",
            title="Bag sizes",
            whole=True,
        ),
        "proportions": [
            bar_chart(
                **found,
                x_label=f"proportion of {name}",
                y_label="bags",
                title=f"Proportions: {name}",
            )
            for name, found in data["proportion_histogram"].items()
        ],
        "roc": roc_chart(record),
        "calibration": calibration_chart(record),
        "candidates": candidates_chart(record["candidates"]),
        "curves": curve_charts(record["candidates"]),
        "task": evaluation["task"],
    }


def output_names(record: dict[str, Any]) -> list[str]:
    """What each curve is about."""
    return list(record["data"]["proportions"])


def roc_chart(record: dict[str, Any]) -> str:
    """ROC curves with pointwise bands."""
    lines = [
        Line(name, c["x"], c["y"], _or_y(c, "low"), _or_y(c, "high"))
        for name, c in zip(output_names(record), record["evaluation"]["roc"], strict=True)
    ]
    labels = {"x_label": "false positive rate", "y_label": "true positive rate"}
    return line_chart(lines, **labels, title="ROC from bags", diagonal=True, unit=True)


def calibration_chart(record: dict[str, Any]) -> str:
    """Share of positives against mean score, with intervals."""
    lines = [
        Line(name, c["x"], c["y"], _or_y(c, "low"), _or_y(c, "high"), points=True)
        for name, c in zip(output_names(record), record["evaluation"]["calibration"], strict=True)
    ]
    labels = {"x_label": "mean score", "y_label": "share of positives"}
    return line_chart(lines, **labels, title="Calibration from bags", diagonal=True, unit=True)


def _or_y(curve: dict[str, Any], end: str) -> list[float]:
    """An end of the interval; where there is none, the point itself."""
    return [y if e is None else e for e, y in zip(curve[end], curve["y"], strict=True)]


def candidates_chart(candidates: list[dict[str, Any]]) -> str:
    """Square risks of the models that were tried."""
    values = [tuple(c["risk"][n] for n in ("value", "low", "high")) for c in candidates]
    names = [c["name"] for c in candidates]
    return interval_chart(
        names, values, x_label="square risk on held-out bags", title="Models that were tried"
    )


def curve_charts(candidates: list[dict[str, Any]]) -> list[str]:
    """Held-out risks in one chart; training losses, which have units of their own, in one each."""
    watched = [_curve_of(c, "held_out_risk") for c in candidates if "held_out_risk" in c["history"]]
    trained = [_curve_of(c, "loss") for c in candidates if "loss" in c["history"]]
    charts = [_over_epochs(watched, "square risk on held-out bags")] if watched else []
    return charts + [_over_epochs([line], f"training loss of {line.name}") for line in trained]


def _curve_of(candidate: dict[str, Any], measure: str) -> Line:
    values = candidate["history"][measure]
    return Line(candidate["name"], list(range(1, len(values) + 1)), values)


def _over_epochs(lines: list[Line], title: str) -> str:
    return line_chart(lines, x_label="epoch or tree", y_label=title, title=title)
