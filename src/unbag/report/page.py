"""The report of a fitted table: one HTML file without scripts or requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unbag.charts import Chart, Series, calibration_chart, roc_chart
from unbag.evaluation.importance import importance_chart
from unbag.evaluation.learning_curve import learning_curve_chart
from unbag.evaluation.printing import readable

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
    "mse": "Mean squared error",
    "r2": "R2: share of the variance of single amounts that is explained",
    "group_mse": "Mean squared error of averages of bags, below that of single amounts",
    "group_r2": "R2 of averages of bags: share of their variance that is explained",
    "bias": "Bias: mean prediction minus mean amount",
    "slope": "Slope of averages on mean predictions, 1 if these are calibrated",
    "deviance": "Poisson deviance per bag",
    "explained_deviance": "Share of the deviance that is explained",
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
    "trend": "Do labels stay the same along the order of the bags?",
    "blocks": "Are bags of one block no more alike than others?",
    "signal": "Do the features predict the proportions?",
}


def render_report(record: dict[str, Any]) -> str:
    """Render the record of a fit (``fit.json``) as one HTML page without scripts or requests."""
    evaluation, amounts = record["evaluation"], record["data"]["task"] == "amount"
    metrics = evaluation.get("metrics") or evaluation["bounds"]
    return render_template(
        "amounts.html.jinja" if amounts else "model.html.jinja",
        record=record,
        charts=_charts(record),
        metrics={name: _metric_words(name) for name in metrics},
        questions=CHECKS,
        error=metrics.get("error"),
        baseline=record["baseline"],
    )


def render_template(
    name: str, *, packages: Sequence[str] = ("unbag.report",), **values: Any
) -> str:
    """Fill in a template from the first package that has it; values are escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loader = ChoiceLoader([PackageLoader(package, "") for package in packages])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"percent": _percent, "number": _number}
    return environment.get_template(name).render(**values)


def _percent(share: float | None) -> str:
    return "not defined" if share is None else f"{100 * share:.1f} %"


def _number(value: float | None) -> str:
    return "not defined" if value is None else readable(value)


def _metric_words(name: str) -> str:
    """Description of a metric, with its class or label."""
    metric, _, output = name.partition("[")
    words = METRICS.get(metric, metric)
    return f"{words} ({output.removesuffix(']')})" if output else words


def _charts(record: dict[str, Any]) -> dict[str, Any]:
    """Every chart of the page, as SVG."""
    data, evaluation = record["data"], record["evaluation"]
    names = list(data["proportions"])
    what = "Averages" if data["task"] == "amount" else "Proportions"
    charts: dict[str, Any] = {
        "sizes": _histogram("Bag sizes", "rows in a bag", data["size_histogram"], whole=True),
        "proportions": [
            _histogram(f"{what}: {name}", f"{what[:-1].lower()} of {name}", found)
            for name, found in data["proportion_histogram"].items()
        ],
        "candidates": _candidates(record["candidates"]),
    }
    for curve, draw in (("roc", roc_chart), ("calibration", calibration_chart)):
        if evaluation.get(curve):
            charts[curve] = draw(dict(zip(names, evaluation[curve], strict=True)))
    if record["importance"]:
        found = record["importance"]
        charts["importance"] = importance_chart(found["measure"], found["columns"])
    if record["learning_curve"]:
        charts["learning_curve"] = learning_curve_chart(record["learning_curve"])
    return {n: v.svg() if isinstance(v, Chart) else [c.svg() for c in v] for n, v in charts.items()}


def _histogram(title: str, label: str, found: dict[str, Any], *, whole: bool = False) -> Chart:
    bars = Series(found["edges"], found["counts"], kind="bars")
    return Chart(title, label, "bags", [bars], whole=whole)


def _candidates(candidates: list[dict[str, Any]]) -> Chart:
    """Square risk of each learner; it is unknown for natural groups."""
    known = [c for c in candidates if c["risk"] is not None]
    value, low, high = ([c["risk"][end] for c in known] for end in ("value", "low", "high"))
    risks = Series(value, range(len(known)), low, high, kind="intervals")
    names = [f"{c['name']}: weight {100 * c['weight']:.0f} %" for c in known]
    return Chart("Learners", "square risk on held-out bags", "", [risks], names=names)
