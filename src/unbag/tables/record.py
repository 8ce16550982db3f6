"""Results of a fit as plain values, for JSON, the console and the report."""

from __future__ import annotations

import math
import platform
from dataclasses import is_dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from unbag.arrays import Array
from unbag.evaluation import (
    AmountEvaluation,
    BagReport,
    ColumnImportance,
    Evaluation,
    NaturalEvaluation,
)
from unbag.tables.fingerprints import fingerprints_of
from unbag.tables.fit import TableFit, fit_table
from unbag.tables.model import TableModel
from unbag.tables.options import FitOptions
from unbag.tables.roles import Roles
from unbag.tables.scan import BagTable, scan_table

AnyEvaluation = Evaluation | NaturalEvaluation | AmountEvaluation
FEW_BAGS = 10  # with fewer, the risk is known within a factor of two at best
N_BINS = 24
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
        Meaning of the columns.
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
    """The model and its record; classes are named by their columns."""
    if table.index.task == "multiclass":
        fit.classifier.classes_ = np.array(table.roles.targets)
    record = fit_record(table, fit, options, command=command)
    return TableModel(fit.classifier, table.encoder, table.roles, record)


def fit_record(
    table: BagTable, fit: TableFit, options: FitOptions, *, command: str
) -> dict[str, Any]:
    found = fit.evaluation
    natural = isinstance(found, NaturalEvaluation)
    fitted = np.sort(np.concatenate([fit.split.training, fit.split.choosing]))
    settings = {name: getattr(options, name) for name in ("models", "quick", "held_out", "seed")}
    return plain(
        {
            "command": command,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": _versions(),
            "data": data_record(table),
            "fingerprints": fingerprints_of(table.index, fitted),
            "settings": settings
            | {
                "sampled": fit.sampled,
                "grouping": _grouping(fit),
                "bags": {n: len(getattr(fit.split, n)) for n in vars(fit.split)},
            },
            "checks": checks_record(fit.checks),
            "candidates": [vars(c) | {"risk": c.risk and c.risk.to_dict()} for c in fit.candidates],
            "chosen": "stack" if hasattr(fit.classifier, "weights_") else fit.candidates[0].name,
            "evaluation": evaluation_record(found),
            "headline": found.headline,
            "importance": importance_record(fit.importance),
            "learning_curve": fit.curve and fit.curve.to_dict(),
            "baseline": _baseline(found),
            "caution": "" if natural else few_bags_caution(found.n_bags),
        }
    )


def _grouping(fit: TableFit) -> str | None:
    """What bags were taken for; None if it was not asked."""
    if isinstance(fit.evaluation, AmountEvaluation):
        return "natural" if fit.evaluation.natural else "random"
    return getattr(fit.classifier, "grouping_", None)


def _baseline(found: AnyEvaluation) -> dict[str, Any] | None:
    """The baseline, its error and a sentence, unless the headline has it."""
    if isinstance(found, AmountEvaluation):
        return None
    if isinstance(found, NaturalEvaluation):
        return vars(found.baseline) | {"verdict": ""}
    return vars(found.baseline) | {"verdict": found.baseline.verdict(found["error"])}


def importance_record(found: ColumnImportance | None) -> dict[str, Any] | None:
    """Rise of the risk when a column is permuted, largest first."""
    if found is None:
        return None
    names = ("value", "low", "high")
    columns = [{"name": n} | {e: getattr(found[n], e) for e in names} for n in found]
    return {"measure": found.measure, "n_bags": found.n_bags, "columns": columns}


def few_bags_caution(n_bags: int) -> str:
    """Warning for fewer than ten evaluation bags, else empty."""
    if n_bags >= FEW_BAGS:
        return ""
    return (
        f"The error and its interval are unreliable, because only {n_bags} bags evaluate it. "
        "Cross-fit in Python: unbag.cross_fit_risk(unbag.BagStackingClassifier(), X, y, bags=ids)."
    )


def data_record(table: BagTable) -> dict[str, Any]:
    """Rows, bags, sizes, proportions, and the columns."""
    index, targets = table.index, table.roles.targets
    proportions = index.proportions.reshape(index.n_bags, -1)
    exact = index.sizes.min() == index.sizes.max() and index.noise_variance is None
    step = 1 / float(index.sizes[0]) if exact else None
    return plain(
        {
            "rows": index.n_rows,
            "bags": index.n_bags,
            "task": index.task,
            "sizes": _summary(index.sizes),
            "size_histogram": histogram(index.sizes, step=1),
            "proportions": {n: _summary(proportions[:, i]) for i, n in enumerate(targets)},
            "proportion_histogram": {
                n: histogram(proportions[:, i], step=step) for i, n in enumerate(targets)
            },
            "prior": np.atleast_1d(np.average(index.proportions, axis=0, weights=index.sizes)),
            "columns": [
                *({"name": n, "use": use} for n, use in _meaning(table.roles).items()),
                *({"name": n, "use": "key: copied, not a feature"} for n in table.roles.keys),
                *({"name": n, "use": "ignored"} for n in table.roles.ignored),
                *({"name": c.name, "use": c.use} for c in table.encoder.columns_),
            ],
            "identifiers": [c.name for c in table.encoder.columns_ if c.kind == "identifier"],
            "features": len(table.encoder.features),
        }
    )


def _meaning(roles: Roles) -> dict[str, str]:
    """Meaning of each bag column."""
    names = ("average", "sum") if roles.task == "amount" else ("proportion", "count")
    noise = f"variance of known noise in the {names[bool(roles.counts)]}"
    counted = "sum of the bag" if roles.task == "amount" else "positive labels in the bag"
    return {
        roles.bag: "bag of the row",
        **dict.fromkeys(roles.proportions, f"{names[0]} of the bag"),
        **dict.fromkeys(roles.counts, counted),
        **({roles.size: "size of the bag, checked"} if roles.size else {}),
        **({roles.noise: noise} if roles.noise in roles.of_bags else {}),
        **({roles.block: "block of the bag: held out together"} if roles.block else {}),
    }


def _summary(values: Array) -> dict[str, float]:
    low, median, high = np.quantile(values, [0, 0.5, 1])
    return {"low": low, "median": median, "mean": values.mean(), "high": high}


def histogram(values: Array, *, step: float | None) -> dict[str, list[float]]:
    """Counts and edges; with few multiples of `step`, each has a bin."""
    low, high = float(values.min()), float(values.max())
    if step is not None and high - low < 2 * N_BINS * step:
        edges = step * np.arange(round(low / step) - 0.5, round(high / step) + 1)
    else:
        edges = np.linspace(low, high if high > low else low + 1, N_BINS + 1)
    counts, _ = np.histogram(values, edges)
    return {"counts": counts.tolist(), "edges": edges.tolist()}


def checks_record(report: BagReport) -> dict[str, Any]:
    names = ("verdict", "plausible", "bias", "n_bags", "findings")
    return plain({name: getattr(report, name) for name in names})


def evaluation_record(found: AnyEvaluation) -> dict[str, Any]:
    """Metrics with intervals, or with bounds for natural groups, and curves (amounts have none)."""
    more: dict[str, Any] = {"metrics": found.to_dict()}
    if isinstance(found, NaturalEvaluation):
        more = found.to_dict() | {"calibration": found.calibration}
    kept = ("roc", "calibration", "confusion", "task", "n_bags", "n_instances", "confidence")
    return plain(
        {
            n: getattr(found, n)
            for n in (*kept, "equivalent_labels", "headline")
            if hasattr(found, n)
        }
        | more
    )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except ModuleNotFoundError:  # an extra, or a source tree that is not installed
            continue
    return found


def plain(value: Any) -> Any:
    """Convert to numbers, strings, lists and dicts; non-finite numbers become None."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
