"""What a fit found, as plain values for JSON, the console and the report."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.evaluation import BagReport, Estimate, Evaluation
from unbag.evaluation.calibration import Curve
from unbag.tables.fingerprints import marks_of
from unbag.tables.fit import CandidateModel, TableFit, fit_table
from unbag.tables.index import BagIndex
from unbag.tables.model import TableModel
from unbag.tables.options import FitOptions
from unbag.tables.roles import Roles
from unbag.tables.scan import BagTable, scan_table

__all__ = [
    "checks_record",
    "data_record",
    "evaluation_record",
    "fit_record",
    "learn_table",
    "model_of",
    "plain",
]

Array = NDArray[Any]
FEW_BAGS = 10  # fewer tell a risk within a factor of two at best
LIBRARIES = ("unbag", "numpy", "scipy", "scikit-learn", "torch", "pyarrow", "lightgbm")


def learn_table(
    table: Any, roles: Roles, *, bag_table: Any = None, options: FitOptions | None = None
) -> TableModel:
    """Fit a model to a table, as `unbag fit` does.

    Parameters
    ----------
    table, bag_table : path or table
        As for `unbag.tables.scan_table`.
    roles : Roles
        Which column means what.
    options : FitOptions, optional

    Examples
    --------
    >>> roles = Roles("report", counts=("conversions",), keys=("event_id",))
    >>> model = learn_table("example:conversions", roles, options=FitOptions(models=("ridge",)))
    >>> model.predict("example:conversions_next").column_names
    ['event_id', 'report', 'score', 'prediction']
    """
    options = options or FitOptions()
    found = scan_table(table, roles, bag_table=bag_table)
    fit = fit_table(found, options)
    return model_of(found, fit, options, command="unbag.learn_table(...)")


def model_of(table: BagTable, fit: TableFit, options: FitOptions, *, command: str) -> TableModel:
    """The model and its record; classes are called by their columns."""
    if table.index.task == "multiclass":
        fit.classifier.classes_ = np.array(table.roles.targets)
    record = fit_record(table, fit, options, command=command)
    return TableModel(fit.classifier, table.encoder, table.roles, record)


def fit_record(
    table: BagTable, fit: TableFit, options: FitOptions, *, command: str
) -> dict[str, Any]:
    """All of a fit."""
    seen = fit.split.of(["training", "choosing"])
    settings = {name: getattr(options, name) for name in ("models", "quick", "held_out", "seed")}
    return plain(
        {
            "command": command,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": _versions(),
            "data": data_record(table),
            "seen": marks_of(table.index, seen),
            "settings": settings
            | {
                "streamed": fit.streamed,
                "grouping": getattr(fit.classifier, "grouping_", None),
                "bags": {n: len(getattr(fit.split, n)) for n in vars(fit.split)},
            },
            "checks": checks_record(fit.checks),
            "candidates": [_candidate(candidate) for candidate in fit.candidates],
            "chosen": fit.candidates[0].name if fit.streamed else "stack",
            "evaluation": evaluation_record(fit.evaluation, table.roles.targets),
            "baseline": baseline_record(table, fit.evaluation["error"]),
            "caution": few_bags_caution(fit.evaluation.n_bags),
        }
    )


def baseline_record(table: BagTable, error: Estimate) -> dict[str, Any]:
    """The error of always predicting the most frequent label, and how the model compares."""
    prior = np.array(_prior(table.index))
    if table.index.task == "multiclass":
        name, value = table.roles.targets[int(prior.argmax())], 1 - prior.max()
    else:
        common = [("no", "yes")[int(p > 0.5)] for p in prior]
        name = common[0] if len(set(common)) == 1 else "the most frequent answer"
        value = np.minimum(prior, 1 - prior).mean()
    words = ""
    if not error.value < value:
        words = f"The model is not better than always predicting {name!r}."
    elif not error.high < value:
        words = f"The bags do not show that the model is better than always predicting {name!r}."
    return {"prediction": name, "error": float(value), "verdict": words}


def few_bags_caution(n_bags: int) -> str:
    """Warning for fewer than ten bags of evaluation; empty if there are enough.

    Examples
    --------
    >>> few_bags_caution(3)[:50], few_bags_caution(30)
    ('The error and its interval rest on 3 bags only and', '')
    """
    if n_bags >= FEW_BAGS:
        return ""
    return (
        f"The error and its interval rest on {n_bags} bags only and may be far off. With so few, "
        "cross-fit in Python: unbag.cross_fit_risk(unbag.BagStackingClassifier(), X, y, bags=ids)."
    )


def data_record(table: BagTable) -> dict[str, Any]:
    """Rows, bags, sizes, proportions, and the columns."""
    index, targets = table.index, table.roles.targets
    proportions = index.proportions.reshape(index.n_bags, -1)
    return plain(
        {
            "rows": index.n_rows,
            "bags": index.n_bags,
            "task": index.task,
            "sizes": _summary(index.sizes),
            "size_histogram": histogram(index.sizes, step=1),
            "proportions": {n: _summary(proportions[:, i]) for i, n in enumerate(targets)},
            "proportion_histogram": {
                n: histogram(proportions[:, i], step=_proportion_step(index))
                for i, n in enumerate(targets)
            },
            "prior": _prior(index),
            "columns": [
                *({"name": n, "use": _meaning(table, n)} for n in table.roles.of_bags),
                *({"name": n, "use": "key: kept, not learned from"} for n in table.roles.keys),
                *({"name": n, "use": "ignored"} for n in table.roles.ignored),
                *({"name": c.name, "use": c.use} for c in table.encoder.columns_),
            ],
            "identifiers": [c.name for c in table.encoder.columns_ if c.kind == "identifier"],
            "features": len(table.encoder.features),
        }
    )


def _meaning(table: BagTable, name: str) -> str:
    roles = table.roles
    if name == roles.bag:
        return "which bag a row belongs to"
    if name in roles.proportions:
        return "proportion of the bag"
    if name in roles.counts:
        return "positive labels in the bag"
    if name == roles.size:
        return "size of the bag, checked"
    if name == roles.block:
        return "block of the bag: held out together"
    return f"variance of known noise in the {'count' if roles.counts else 'proportion'}"


def _prior(index: BagIndex) -> list[float]:
    prior = np.average(index.proportions, axis=0, weights=index.sizes)
    return np.atleast_1d(prior).tolist()


def _summary(values: Array) -> dict[str, float]:
    low, median, high = np.quantile(values, [0, 0.5, 1])
    return {"low": low, "median": median, "mean": values.mean(), "high": high}


def histogram(
    values: Array, *, step: float | None = None, n_bins: int = 24
) -> dict[str, list[float]]:
    """Counts and edges; each multiple of `step` gets a bin, if there are few of them.

    Examples
    --------
    >>> histogram(np.array([20, 20, 21]), step=1)
    {'counts': [2, 1], 'edges': [19.5, 20.5, 21.5]}
    """
    low, high = float(values.min()), float(values.max())
    if step is not None and high - low < 2 * n_bins * step:
        edges = step * np.arange(round(low / step) - 0.5, round(high / step) + 1)
    else:
        edges = np.linspace(low, high if high > low else low + 1, n_bins + 1)
    counts, _ = np.histogram(values, edges)
    return {"counts": counts.tolist(), "edges": edges.tolist()}


def _proportion_step(index: BagIndex) -> float | None:
    """Distance between the proportions that bags can have, if it is the same for all."""
    equal = index.sizes.min() == index.sizes.max() and index.noise_variance is None
    return 1 / float(index.sizes[0]) if equal else None


def checks_record(report: BagReport) -> dict[str, Any]:
    """Findings about the bags."""
    return plain(
        {
            "verdict": report.verdict,
            "plausible": report.plausible,
            "bias": report.bias,
            "n_bags": report.n_bags,
            "findings": [vars(finding) for finding in report.findings],
        }
    )


def evaluation_record(found: Evaluation, outputs: Sequence[str] = ()) -> dict[str, Any]:
    """Metrics with intervals, and the curves; those of one output are called by its name."""
    numbered = {f"[{number}]": f"[{name}]" for number, name in enumerate(outputs)}

    def renamed(metric: str) -> str:
        start = metric.find("[")
        return (
            metric if start < 0 else metric[:start] + numbered.get(metric[start:], metric[start:])
        )

    return plain(
        {
            "metrics": {renamed(name): values for name, values in found.to_dict().items()},
            "roc": [_curve(curve) for curve in found.roc],
            "calibration": [_curve(curve) for curve in found.calibration],
            "confusion": found.confusion.tolist(),
            "task": found.task,
            "n_bags": found.n_bags,
            "n_instances": found.n_instances,
            "confidence": found.confidence,
            "equivalent_labels": found.equivalent_labels,
        }
    )


def _candidate(candidate: CandidateModel) -> dict[str, Any]:
    risk = None if candidate.risk is None else candidate.risk.to_dict()
    return {"name": candidate.name, "weight": candidate.weight, "risk": risk}


def _curve(curve: Curve) -> dict[str, list[float]]:
    return {name: np.asarray(values).tolist() for name, values in vars(curve).items()}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except ModuleNotFoundError:  # an extra, or a source tree that is not installed
            continue
    return found


def plain(value: Any) -> Any:
    """Numbers, strings, lists and dicts only; what is not finite is None.

    Examples
    --------
    >>> plain({"a": np.float64("nan"), "b": (np.int64(1), 0.5)})
    {'a': None, 'b': [1, 0.5]}
    """
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
