"""Metrics of a classifier from bags that are random groups, each with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from unbag.arguments import check_whole
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.evaluation.confusion import (
    CELLS,
    DECISION_METRICS,
    decision_intervals,
    estimate_errors,
    no_interval,
)
from unbag.evaluation.estimate import Estimate, student_estimate
from unbag.evaluation.intervals import LAPLACE_KURTOSIS
from unbag.evaluation.positives import fit_positives, score_table
from unbag.evaluation.residual_moments import noise_of, residual_product
from unbag.evaluation.results import Evaluation, trivial_baseline
from unbag.evaluation.risk import checked_scores, decisions, estimate_risk
from unbag.evaluation.score_metrics import (
    SCORE_METRICS,
    Curve,
    calibration_curve,
    calibration_error,
    metrics_of_scores,
    roc_curve,
)

# Without the number of the class or label that may follow, as in "auc[0]".
METRICS = (
    "error",
    "brier",
    *(name for name in DECISION_METRICS if name not in CELLS),
    *SCORE_METRICS,
    "calibration_error",
)
# Averages over classes or labels that people report.
MACRO = ("auc", "precision", "recall", "f1")


def evaluate_bags(
    scores: Any,
    bags: Bags,
    *,
    noise_kurtosis: float = LAPLACE_KURTOSIS,
    confidence: float = 0.95,
    n_bins: int = 10,
    names: Sequence[Any] = (),
) -> Evaluation:
    """Evaluate probabilities, in the order of ``bags.X``, on bags; see `evaluate`.

    `names` are those of classes or labels; by default numbers.
    """
    check_whole("n_bins", n_bins)
    values = checked_scores(scores, bags)
    options = {"confidence": confidence, "noise_kurtosis": noise_kurtosis}
    shared = _risks(values, bags, options)
    # An undefined metric, such as AUC without positives, is NaN and is marked in the table.
    with np.errstate(divide="ignore", invalid="ignore"):
        outputs = [_one_output(v, bags, i, n_bins, options) for i, v in enumerate(values.T)]
    estimates = _merged(shared, [found for found, *_ in outputs], bags.task, names)
    cells = np.stack([c for _, c, *_ in outputs], axis=1)
    if bags.task == "multiclass":
        hard = decisions(values, bags.task)
        cells = np.stack(confusion_matrix(hard, bags, confidence=confidence))[:, None]
    value, low, high = cells if bags.task == "multilabel" else cells[:, 0]
    error = estimates["error"]
    return Evaluation(
        estimates,
        confusion=value,
        confusion_low=low,
        confusion_high=high,
        roc=[curve for *_, curve, _ in outputs],
        calibration=[curve for *_, curve in outputs],
        residuals=(bags.mean(values) - bags.proportions.reshape(bags.n_bags, -1)).squeeze(),
        task=bags.task,
        n_bags=bags.n_bags,
        n_instances=bags.n_instances,
        confidence=confidence,
        equivalent_labels=max(error.value * (1 - error.value), 0) / error.standard_error**2,
        baseline=trivial_baseline(bags, names),
        names=list(names),
    )


def _risks(values: Array, bags: Bags, options: dict[str, Any]) -> dict[str, Estimate]:
    found = {
        "error": estimate_risk(values, bags, loss="zero_one", **options),
        "brier": estimate_risk(values, bags, loss="square", **options),
    }
    if bags.task == "multiclass":
        found["log_loss"] = multiclass_log_loss(values, bags, confidence=options["confidence"])
    return found


def _one_output(
    scores: Array, bags: Bags, output: int, n_bins: int, options: dict[str, Any]
) -> tuple[dict[str, Estimate], Array, Curve, Curve]:
    """Everything about one label, or one class against the rest."""
    proportions = bags.proportions.reshape(bags.n_bags, -1)[:, output]
    table = score_table(scores, bags, proportions, noise_of(bags))
    errors = estimate_errors(table, noise_kurtosis=options["noise_kurtosis"])
    found = decision_intervals(errors, confidence=options["confidence"])
    own = [found.pop(name) for name in CELLS]
    cells = np.array([(cell.value, cell.low, cell.high) for cell in own]).T.reshape(3, 2, 2)
    positives = fit_positives(table)
    reason = no_interval(errors).get("true_positives", "")
    found |= metrics_of_scores(positives, reason=reason, **options)
    found["calibration_error"] = calibration_error(
        positives, confidence=options["confidence"], n_bins=n_bins
    )
    return (
        found,
        cells,
        roc_curve(positives, **options),
        calibration_curve(positives, n_bins=n_bins, **options),
    )


def _merged(
    shared: dict[str, Estimate],
    outputs: list[dict[str, Estimate]],
    task: str,
    names: Sequence[Any],
) -> dict[str, Estimate]:
    if task == "binary":
        return {**shared, **outputs[0]}
    single = {
        f"{metric}[{name}]": found
        for name, output in zip(names if len(names) else range(len(outputs)), outputs, strict=True)
        for metric, found in output.items()
        if not (task == "multiclass" and metric == "log_loss")
    }
    macro = {f"macro_{m}": macro_average([output[m] for output in outputs]) for m in MACRO}
    return {**shared, **macro, **single}


def macro_average(found: Sequence[Estimate]) -> Estimate:
    """Mean of the estimates of classes or labels.

    Its standard error is at most the mean of standard errors, whatever the dependence; the interval
    uses this bound.
    """
    value, low, high, error = (
        float(np.mean([getattr(f, name) for f in found]))
        for name in ("value", "low", "high", "standard_error")
    )
    reason = next((f.reason for f in found if f.reason), "")
    return replace(found[0], value=value, low=low, high=high, standard_error=error, reason=reason)


def confusion_matrix(
    decisions: Array, bags: Bags, *, confidence: float = 0.95
) -> tuple[Array, Array, Array]:
    """Share of instances by true (rows) and predicted class (columns), with its interval (D21).

    Intervals come from the jackknife over bags, NaN below three bags. Entries are unbiased, so they
    may be negative. Noise that is independent between classes has no effect.
    """
    h, y, n_bags = bags.mean(decisions), bags.proportions, bags.n_bags
    sizes = bags.sizes.astype(float)[:, None]
    parts = np.concatenate([np.ones_like(sizes), h - y, h + y, h], axis=1)
    # Sums over bags of sizes, sized means, and sized products of residuals with both.
    products = sizes[:, :, None] * parts[:, :, None] * (h - y)[:, None, :]
    sums = np.concatenate([(sizes * parts)[:, :, None], products], axis=2)
    total = sums.sum(axis=0)
    value = _confusion(total, n_bags)
    if n_bags < 3:
        return value, value * np.nan, value * np.nan
    error = np.sqrt((n_bags - 1) * _confusion(total - sums, n_bags - 1).var(axis=0))
    half = stats.t.ppf((1 + confidence) / 2, n_bags - 1) * error
    return value, value - half, value + half


def _confusion(sums: Array, n_bags: int) -> Array:
    """Confusion matrix from sums over bags (..., 1 + 3 n_classes, 1 + n_classes)."""
    n_classes, n_instances = sums.shape[-1] - 1, sums[..., :1, :1]
    means = sums[..., :, :1] / n_instances
    gaps, chosen = means[..., 1 : 1 + n_classes, 0], means[..., 1 + 2 * n_classes :, 0]
    outer = means * gaps[..., None, :]
    # The product of two means holds a covariance too, divided by the number of instances.
    spread = (sums[..., :, 1:] - n_instances * outer) / (n_bags - 1) * (1 - 1 / n_instances)
    products = outer + spread
    squares = products[..., 1 : 1 + n_classes, :]
    crosses = products[..., 1 + n_classes : 1 + 2 * n_classes, :].swapaxes(-1, -2)
    differences = (crosses.swapaxes(-1, -2) - crosses) / 2
    # The least change by which every row sum of C - C' becomes the prior less the share chosen.
    missing = (-gaps - differences.sum(axis=-1)) / n_classes
    differences = differences + missing[..., :, None] - missing[..., None, :]
    matrix = (differences - squares) / 2 * (1 - np.eye(n_classes))
    return matrix + np.eye(n_classes) * (chosen - matrix.sum(axis=-2))[..., None, :]


def multiclass_log_loss(scores: Array, bags: Bags, *, confidence: float = 0.95) -> Estimate:
    r"""Mean of :math:`-\log f_y`, unbiased, with the scores themselves as control."""
    scores = scores[bags.rows]
    losses = -np.log(np.clip(scores, 1e-15, 1))
    beyond, paired = residual_product(losses, scores, bags)
    value = (scores * losses).sum(axis=1).mean() + beyond
    square = (scores * losses**2).sum(axis=1).mean()
    # D22. Residuals of bags show large losses that overconfident scores miss.
    square += max(residual_product(losses**2, scores, bags)[0], 0)
    error = np.sqrt(max(paired, 0) + max(square - value**2, 0) / bags.n_instances)
    about: dict[str, Any] = {"highest": np.inf, "n_bags": bags.n_bags}
    return student_estimate(value, error, bags.n_bags - 1, confidence=confidence, **about)
