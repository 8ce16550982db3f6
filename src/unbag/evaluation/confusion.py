r"""Metrics of hard predictions: confusion matrix, precision, recall, F1, balanced error.

The mean residual estimates the difference of false positives and false negatives, the residuals'
mean square their sum, :math:`FP - FN = E[h - y]` and :math:`FP + FN = E[(h - y)^2]`. Both are far
more precise than a regression of labels on predictions, and they give the whole 2x2 matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from unbag.evaluation.confusion_law import (
    Errors,
    Metric,
    gradient_of,
    inside,
    joint_cumulants,
    law_of_metric,
)
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.intervals import LAPLACE_KURTOSIS, ResidualMoments, invert_law
from unbag.evaluation.positives import ScoreTable
from unbag.evaluation.spread import FEW_BAGS, outer_ends
from unbag.evaluation.weighting import Fit, fit_variance

__all__ = ["CELLS", "DECISION_METRICS", "Errors", "decision_intervals", "estimate_errors"]

Array = NDArray[Any]


def _prior(fp: Any, fn: Any, chosen: Any) -> Any:
    prior = chosen - fp + fn
    whole = np.round(prior)  # what rounding leaves of none or all is not a share to divide by
    return np.where(np.abs(prior - whole) < 1e-12, whole, prior)


# Each is a function of the shares of false positives, false negatives and positive predictions.
DECISION_METRICS: dict[str, Metric] = {
    "balanced_error": lambda fp, fn, h: (fp / (1 - _prior(fp, fn, h)) + fn / _prior(fp, fn, h)) / 2,
    "precision": lambda fp, fn, h: 1 - fp / h,
    "recall": lambda fp, fn, h: 1 - fn / _prior(fp, fn, h),
    "specificity": lambda fp, fn, h: 1 - fp / (1 - _prior(fp, fn, h)),
    "f1": lambda fp, fn, h: 1 - (fp + fn) / (h + _prior(fp, fn, h)),
    "prior": _prior,
    "true_negatives": lambda fp, fn, h: 1 - h - fn,
    "false_positives": lambda fp, fn, h: fp + 0 * h,
    "false_negatives": lambda fp, fn, h: fn + 0 * h,
    "true_positives": lambda fp, fn, h: h - fp,
}
CELLS = ("true_negatives", "false_positives", "false_negatives", "true_positives")
# D17. What a metric divides by. Multiplied by it, the metric is linear, and so is its error.
DENOMINATORS: dict[str, Metric] = {
    "balanced_error": lambda fp, fn, h: _prior(fp, fn, h) * (1 - _prior(fp, fn, h)),
    "precision": lambda fp, fn, h: h,
    "recall": _prior,
    "specificity": lambda fp, fn, h: 1 - _prior(fp, fn, h),
    "f1": lambda fp, fn, h: h + _prior(fp, fn, h),
}
# Which class a metric needs enough instances of.
NEEDS = {
    "positives": ("balanced_error", "precision", "recall", "f1", "true_positives"),
    "negatives": ("balanced_error", "specificity", "true_negatives"),
}
MIN_BAGS = 8  # D19
# D16. A path runs from -20 to 20 deviations, densest in the middle.
STEPS = np.sinh(np.linspace(-3.7, 3.7, 61))
# D19. A class with a smaller share is rare. It needs so many instances and standard errors.
RARE, MIN_INSTANCES, MIN_ERRORS = 0.05, 200, 6


def estimate_errors(table: ScoreTable, *, noise_kurtosis: float = LAPLACE_KURTOSIS) -> Errors:
    """Split the error of hard predictions into false positives and false negatives."""
    chosen = float(table.average(table.hard))
    residuals = table.bag_mean(table.hard) - table.proportions
    law = ResidualMoments(noise_kurtosis=noise_kurtosis)
    fit = fit_variance(residuals[:, None], table.sizes, table.noise, law=law)
    first = table.proportions[0]
    one_class = first in (0, 1) and not np.ptp(table.proportions) and not table.noise.any()
    if 0 < chosen < 1 and one_class:
        chosen = fit.mean[0] + first  # so that the share of that class is its own
    return Errors(
        false_positives=(fit.risk + fit.mean[0]) / 2,
        false_negatives=(fit.risk - fit.mean[0]) / 2,
        chosen=chosen,
        fit=fit,
        sizes=table.sizes,
        noise=table.noise,
        parts=_parts(table, residuals, fit),
        noise_kurtosis=noise_kurtosis,
    )


def _parts(table: ScoreTable, residuals: Array, fit: Fit) -> Array:
    squares = table.sizes * ((residuals - fit.mean) ** 2 - table.noise)
    chosen = table.bag_mean(table.hard)
    shares = table.sizes / table.n_instances
    rows = ((fit.weights, squares), (fit.shares, residuals), (shares, chosen))
    return np.stack([w * (v - w @ v / w.sum()) for w, v in rows])


def no_interval(errors: Errors) -> dict[str, str]:
    """Metrics of which these bags allow no interval, each with the reason.

    A rare class needs two hundred instances, and a share that exceeds six standard errors of a
    classifier that guesses. Both depend on two well-known shares, not on the errors estimated.
    """
    if len(errors.sizes) < MIN_BAGS:
        names = {name for name in DECISION_METRICS if name != "prior"}
        return dict.fromkeys(names, f"fewer than {MIN_BAGS} bags")
    prior = float(
        np.clip(_prior(errors.false_positives, errors.false_negatives, errors.chosen), 0, 1)
    )
    chosen = errors.chosen
    guess = np.array([[chosen * (1 - prior)], [prior * (1 - chosen)], [chosen]])
    guess = np.clip(guess, 0.5 / errors.sizes.sum(), 1 - 1e-9)
    error = law_of_metric(
        DECISION_METRICS["true_positives"], guess, joint_cumulants(errors, guess)
    )[0][0]
    reasons: dict[str, str] = {}
    for kind, most in (("positives", min(chosen, prior)), ("negatives", 1 - max(chosen, prior))):
        if most < min(max(MIN_ERRORS * error, MIN_INSTANCES / errors.sizes.sum()), RARE):
            reasons |= dict.fromkeys(NEEDS[kind], f"too few {kind}")
    return reasons


def decision_intervals(
    errors: Errors, *, metrics: dict[str, Metric] | None = None, confidence: float = 0.95
) -> dict[str, Estimate]:
    r"""Estimate metrics of the confusion matrix, with standard errors and intervals.

    The law of an estimate is known for every value of the three parameters. It is inverted along
    the line on which the parameters move as their errors covary with the metric's, which is the
    direction in which the metric is hardest to tell.

    Returns
    -------
    dict of Estimate, by metric
        NaN where a metric is not defined, as precision is when nothing is predicted positive.
    """
    metrics = DECISION_METRICS if metrics is None else metrics
    estimate = np.array([errors.false_positives, errors.false_negatives, errors.chosen])
    # D16. Less than one error seen does not mean that there is no spread.
    floor = np.maximum(estimate, 0.5 / errors.sizes.sum())
    floor[2] = np.clip(floor[2], floor[0] + 1e-9, 1 - 1e-9)
    shared = joint_cumulants(errors, floor[:, None])
    found, reasons = {}, no_interval(errors)
    for name, metric in metrics.items():
        deviation, _, way = law_of_metric(metric, floor[:, None], shared)
        value, ends = float(metric(*estimate)), (np.nan, np.nan)
        if np.isfinite(value) and name not in reasons:
            path = inside(estimate[:, None] + way * (deviation * STEPS))
            ends = _inverted(name, metric, errors, estimate, path, confidence)
            if len(errors.sizes) < FEW_BAGS:
                parts = gradient_of(metric, floor[:, None])[:, 0] @ errors.parts
                ends = outer_ends(ends, value, parts, confidence=confidence)
        found[name] = Estimate(
            value if np.isfinite(value) else np.nan,
            *ends,
            float(deviation[0]),
            n_bags=len(errors.sizes),
            confidence=confidence,
            reason=reasons.get(name, ""),
        )
    return found


def _inverted(
    name: str, metric: Metric, errors: Errors, estimate: Array, path: Array, confidence: float
) -> tuple[float, float]:
    """Interval of one metric, from its law at every point of a path."""
    value, truths = float(metric(*estimate)), metric(*path)
    deviation, skewness, _ = law_of_metric(metric, path, joint_cumulants(errors, path))
    below = DENOMINATORS.get(name, lambda fp, fn, h: 1 + 0 * h)
    deviation = deviation * below(*path) / below(*estimate)
    rising = np.concatenate([[True], np.diff(np.maximum.accumulate(truths)) > 0])
    law = truths[rising], deviation[rising], skewness[rising]
    tail = (1 - confidence) / 2
    low, high = (invert_law(value, *law, probability=p) for p in (1 - tail, tail))
    if name in ("false_positives", "false_negatives"):
        # D16. An interval reaches as far as that for a number of errors that can be counted.
        n_instances = errors.sizes.sum()
        counts = np.maximum(value * n_instances + [0, 1], [1e-9, 1])
        ends = special.gammaincinv(counts, [tail, 1 - tail]) / n_instances
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    return low, high
