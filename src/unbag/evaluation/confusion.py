r"""Metrics of hard predictions: confusion matrix, precision, recall, F1, balanced error.

The mean residual estimates the difference of false positives and false negatives, the residuals'
mean square their sum, :math:`FP - FN = E[h - y]` and :math:`FP + FN = E[(h - y)^2]`. Both are far
more precise than a regression of labels on predictions, and they give the whole 2x2 matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from scipy import special

from unbag.arrays import Array
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.intervals import LAPLACE_KURTOSIS, ResidualMoments, law_interval
from unbag.evaluation.positives import ScoreTable
from unbag.evaluation.spread import FEW_BAGS, outer_ends
from unbag.evaluation.weighting import Fit, fit_variance, group_bags

# A function of the shares of false positives, false negatives and positive predictions.
Metric = Callable[[Any, Any, Any], Any]


def _prior(fp: Any, fn: Any, chosen: Any) -> Any:
    prior = chosen - fp + fn
    whole = np.round(prior)  # what rounding leaves of none or all is not a share to divide by
    return np.where(np.abs(prior - whole) < 1e-12, whole, prior)


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


@dataclass(frozen=True)
class Errors:
    """Estimated errors of hard predictions and the bags they come from."""

    false_positives: float  # share of all instances, as the next two
    false_negatives: float
    chosen: float  # predicted positive
    fit: Fit
    sizes: Array
    noise: Array
    parts: Array  # what each bag adds to the residual's variance, its mean and `chosen`
    noise_kurtosis: float

    @cached_property
    def kinds(self) -> tuple[Array, Array, Array]:
        """Distinct sizes and noises, and sums over such bags of products of weights and shares.

        Column (a, b) of the last is the sum of ``weights**a * shares**b``, a + b from 2 to 3.
        """
        sizes, noise, where = group_bags(self.sizes, self.noise)
        powers = [(2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3)]
        w, v = self.fit.weights, self.fit.shares
        sums = [np.bincount(where, w**a * v**b) for a, b in powers]
        return sizes, noise, np.stack(sums)


def estimate_errors(table: ScoreTable, *, noise_kurtosis: float = LAPLACE_KURTOSIS) -> Errors:
    """Split the error of hard predictions into false positives and false negatives."""
    chosen = float(table.average(table.hard))
    residuals = table.bag_mean(table.hard) - table.proportions
    law = ResidualMoments(noise_kurtosis=noise_kurtosis)
    fit = fit_variance(residuals[:, None], table.sizes, table.noise, law=law)
    squares = table.sizes * ((residuals - fit.mean) ** 2 - table.noise)
    shares, predicted = table.sizes / table.n_instances, table.bag_mean(table.hard)
    rows = ((fit.weights, squares), (fit.shares, residuals), (shares, predicted))
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
        parts=np.stack([w * (v - w @ v / w.sum()) for w, v in rows]),
        noise_kurtosis=noise_kurtosis,
    )


def no_interval(errors: Errors) -> dict[str, str]:
    """Metrics of which these bags allow no interval, each with the reason.

    A rare class needs two hundred instances, and a share that exceeds six standard errors of a
    classifier that guesses. Both depend on two well-known shares, not on the errors estimated.
    """
    if len(errors.sizes) < MIN_BAGS:
        names = {name for name in DECISION_METRICS if name != "prior"}
        return dict.fromkeys(names, f"fewer than {MIN_BAGS} bags")
    chosen = errors.chosen
    prior = float(np.clip(_prior(errors.false_positives, errors.false_negatives, chosen), 0, 1))
    guess = np.array([[chosen * (1 - prior)], [prior * (1 - chosen)], [chosen]])
    guess = np.clip(guess, 0.5 / errors.sizes.sum(), 1 - 1e-9)
    metric = DECISION_METRICS["true_positives"]
    error = law_of_metric(metric, guess, joint_cumulants(errors, guess))[0][0]
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
    direction in which the metric is least certain.

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
    low, high = law_interval(value, *law, confidence)
    if name in ("false_positives", "false_negatives"):
        # D16. An interval reaches as far as that for a number of errors that can be counted.
        n_instances = errors.sizes.sum()
        counts = np.maximum(value * n_instances + [0, 1], [1e-9, 1])
        tail = (1 - confidence) / 2
        ends = special.gammaincinv(counts, [tail, 1 - tail]) / n_instances
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    return low, high


def inside(parameters: Array) -> Array:
    """Move shares of errors back to where they can be."""
    fp, fn, chosen = parameters
    chosen = np.clip(chosen, 1e-9, 1 - 1e-9)
    return np.stack([np.clip(fp, 0, chosen), np.clip(fn, 0, 1 - chosen), chosen])


def law_of_metric(
    metric: Metric, parameters: Array, cumulants: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Deviation, skewness and direction of a metric's estimate, for each column of parameters."""
    gradient = gradient_of(metric, parameters)
    by_variance, by_mean = gradient[:2]
    second, third = cumulants
    covariances = np.einsum("abt,bt->at", second, gradient)
    variance = np.maximum((gradient * covariances).sum(axis=0), 1e-30)
    cubes = np.stack(
        [by_variance**3, 3 * by_variance**2 * by_mean, 3 * by_variance * by_mean**2, by_mean**3]
    )
    skewness = (cubes * third).sum(axis=0) / variance**1.5
    along = covariances / variance
    gap = parameters[0] - parameters[1]
    risk_step = along[0] + 2 * gap * along[1]
    steps = np.stack([(risk_step + along[1]) / 2, (risk_step - along[1]) / 2, along[2]])
    return np.sqrt(variance), skewness, steps


def gradient_of(metric: Metric, parameters: Array) -> Array:
    """Derivatives by the variance of the residual, its mean, and the share chosen."""
    steps = 1e-6 * np.eye(3)[:, :, None]
    fp, fn, chosen = ((metric(*(parameters + s)) - metric(*(parameters - s))) / 2e-6 for s in steps)
    by_risk, by_gap = (fp + fn) / 2, (fp - fn) / 2
    return np.stack([by_risk, by_gap + 2 * (parameters[0] - parameters[1]) * by_risk, chosen])


def joint_cumulants(errors: Errors, parameters: Array) -> tuple[Array, Array]:
    """Second cumulants of variance, mean and share chosen; third ones of the first two (D16)."""
    sizes, noise, sums = errors.kinds
    k2, k3, k4, k5, k6 = _bag_cumulants(parameters, sizes, noise, errors.noise_kurtosis)
    n_instances = errors.sizes.sum()
    fp, fn, chosen = parameters
    gap, risk = fp - fn, fp + fn
    second = np.empty((3, 3, parameters.shape[1]))
    second[0, 0] = (sizes**2 * (2 * k2**2 + k4)) @ sums[0]
    second[0, 1] = second[1, 0] = (sizes * k3) @ sums[1]
    second[1, 1] = k2 @ sums[2]
    second[1, 2] = second[2, 1] = (fp - gap * chosen) / n_instances
    joint = fp - risk * chosen - 2 * gap * fp + 2 * gap**2 * chosen
    second[0, 2] = second[2, 0] = joint / n_instances
    second[2, 2] = chosen * (1 - chosen) / n_instances
    cube = sizes**3 * (8 * k2**3 + 12 * k2 * k4 + 10 * k3**2 + k6)
    third = [
        cube @ sums[3],
        (sizes**2 * (k5 + 8 * k2 * k3)) @ sums[4],
        (sizes * (k4 + 2 * k2**2)) @ sums[5],
        k3 @ sums[6],
    ]
    return second, np.stack(third)


def _bag_cumulants(parameters: Array, sizes: Array, noise: Array, kurtosis: float) -> list[Array]:
    """Cumulants 2 to 6 of a bag's residual, a row per parameter and a column per kind of bag."""
    gap, risk = (parameters[0] - parameters[1])[:, None], (parameters[0] + parameters[1])[:, None]
    # A residual is -1, 0 or 1: its odd moments are the gap, its even ones the risk.
    moments = [np.ones_like(gap), gap, risk, gap, risk, gap, risk]
    cumulants = [0 * gap, gap]
    for m in range(2, 7):
        lower = [comb(m - 1, j - 1) * cumulants[j] * moments[m - j] for j in range(1, m)]
        cumulants.append(moments[m] - sum(lower))
    added = [noise, 0.0, kurtosis * noise**2, 0.0, 30 * (kurtosis / 3) ** 2 * noise**3]
    return [cumulants[m] / sizes ** (m - 1) + a for m, a in enumerate(added, start=2)]
