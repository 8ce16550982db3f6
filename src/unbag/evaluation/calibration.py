"""Calibration and ROC curves from bags, with pointwise intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from unbag.arrays import Array
from unbag.evaluation.curves import Gradient, positives_above, positives_inside, score_metric
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.positives import Positives
from unbag.evaluation.spread import mass_covariance, paired_factor, variance_error

N_DRAWS = 400  # D20
N_STEPS = 24
N_POINTS = 41  # of a ROC curve


@dataclass(frozen=True)
class Curve:
    """Points (x, y) of a curve, with pointwise intervals of `y` and the score of each point."""

    x: Array
    y: Array
    low: Array
    high: Array
    threshold: Array


def score_bins(positives: Positives, n_bins: int) -> Array:
    """Bin of each score; bins have about equal numbers of instances."""
    shares = positives.table.shares
    middle = np.cumsum(shares) - shares / 2
    bins = np.minimum((middle * n_bins).astype(int), n_bins - 1)
    return np.unique(bins, return_inverse=True)[1].reshape(-1)


def roc_curve(positives: Positives, **options: Any) -> Curve:
    """True positive rate, with intervals, against false positive rate.

    Options are those of `score_metric`. The points are consistent, but need not be monotone.
    """
    table = positives.table
    levels = np.searchsorted(np.cumsum(table.shares), np.linspace(0, 1, N_POINTS))
    cuts = np.unique(table.scores[np.minimum(levels, len(table.scores) - 1)])
    cuts = np.append(cuts[::-1], np.nextafter(table.scores[0], -1))
    negatives = table.shares - positives.masses
    x = [negatives @ (table.scores > cut) / (1 - positives.prior) for cut in cuts]
    points = [positives_above(positives, cut) for cut in cuts]
    return _curve(x, points, cuts, positives, **options)


def calibration_curve(positives: Positives, *, n_bins: int = 10, **options: Any) -> Curve:
    """Share of positives against mean score, in bins of about equal numbers of instances.

    Options are those of `score_metric`.
    """
    table, bins = positives.table, score_bins(positives, n_bins)
    members = [(bins == number).astype(float) for number in range(bins.max() + 1)]
    x = [table.average(m * table.scores) / table.average(m) for m in members]
    points = [positives_inside(positives, m) for m in members]
    return _curve(x, points, [table.scores[m > 0].min() for m in members], positives, **options)


def _curve(
    x: Sequence[float],
    points: Sequence[Gradient],
    threshold: ArrayLike,
    positives: Positives,
    **options: Any,
) -> Curve:
    found = [score_metric(point, positives, **options) for point in points]
    y, low, high = np.array([(e.value, e.low, e.high) for e in found]).T
    return Curve(np.array(x), y, low, high, np.array(threshold))


def calibration_error(
    positives: Positives, *, confidence: float = 0.95, n_bins: int = 10
) -> Estimate:
    r"""Expected calibration error, :math:`\sum_b |E[(y - f) 1_b]|`.

    Absolute values of noisy gaps are too large on average. The estimate is the error under which
    the observed sum would be the median, the interval those under which it would not be extreme.
    """
    bins = score_bins(positives, n_bins)
    members = (bins == np.arange(bins.max() + 1)[:, None]).astype(float)
    table = positives.table
    gaps = members @ (positives.masses - table.shares * table.scores)
    covariance = np.stack(
        [
            members @ mass_covariance(positives, m, -m * table.scores, offset=table.scores)
            for m in members
        ]
    )
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-18))
    by_variance = variance_error(positives) * np.array(
        [paired_factor(positives, m)[1] for m in members]
    )
    errors, others = np.split(_draws(covariance, by_variance, positives.table.freedom), 2)
    signs = np.where(gaps + others < 0, -1, 1)
    total = np.abs(gaps).sum()
    tail = (1 - confidence) / 2
    # D20. A small gap may be none at all, or as large as its error: the lower end allows for the
    # first, because none adds only noise to the sum, the upper end for the second.
    clear = np.maximum(np.abs(gaps) - 2 * deviations, 0)
    likely = np.sqrt(np.maximum(gaps**2 - deviations**2, 0))
    clear, likely = (s if s.any() else np.abs(gaps) + 1e-12 for s in (clear, likely))
    low, _ = _error_at(total, clear, signs, errors, 1 - tail)
    value, deviation = _error_at(total, likely, signs, errors, 0.5)
    high, _ = _error_at(total, _folded_mean(gaps, deviations), signs, errors, tail)
    return Estimate(value, low, high, deviation, n_bags=table.n_bags, confidence=confidence)


def _folded_mean(mean: Array, deviation: Array) -> Array:
    """Mean of the absolute value of a normal variable."""
    ratio = mean / deviation
    tails = np.exp(-(ratio**2) / 2) * np.sqrt(2 / np.pi)
    return deviation * (tails + ratio * special.erf(ratio / np.sqrt(2)))


def _error_at(
    total: float, sizes: Array, signs: Array, errors: Array, probability: float
) -> tuple[float, float]:
    """Error at which `total` is that quantile of the noisy sum, and the sum's deviation there."""
    shape = signs * sizes / sizes.sum()
    truths = np.concatenate([[0.0], total * np.geomspace(0.02, 4, N_STEPS)])
    sums = sum(np.abs(truths[:, None] * s + e) for s, e in zip(shape.T, errors.T, strict=True))
    quantiles = np.quantile(sums, probability, axis=1)
    found = 0.0
    if total > quantiles[0]:
        found = float(np.interp(total, np.maximum.accumulate(quantiles), truths))
    return found, float(sums[np.searchsorted(truths, found)].std())


def _draws(covariance: Array, by_variance: Array, freedom: float) -> Array:
    """Simulate twice `N_DRAWS` errors of the gaps, with a fixed seed.

    D20. The part `by_variance` depends on the error of the residual variance: if that is too low,
    so is the covariance.
    """
    rng = np.random.default_rng(0)
    linear = covariance - np.outer(by_variance, by_variance)
    values, vectors = np.linalg.eigh((linear + linear.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0))
    normal = rng.standard_normal((2 * N_DRAWS, len(values))) @ root.T
    ratio = rng.chisquare(freedom, (2 * N_DRAWS, 1)) / freedom
    return normal / np.sqrt(ratio) + by_variance * (1 / ratio - 1) * np.sqrt(freedom / 2)
