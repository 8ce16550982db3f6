"""Metrics of scores: log loss, AUC, average precision, calibration; ROC and calibration curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from unbag.arrays import Array
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.intervals import LAPLACE_KURTOSIS
from unbag.evaluation.positives import Positives
from unbag.evaluation.spread import (
    mass_covariance,
    paired_factor,
    spread_of,
    studentised_interval,
    variance_error,
)

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


class Gradient(NamedTuple):
    """A metric with its derivatives by the mass of positives and by the share at each score.

    `second`, for strongly nonlinear metrics, is the second derivative by the masses in a direction.
    """

    value: float
    by_positives: Array
    by_shares: Array
    second: Callable[[Array], float] | None = None


def log_loss(positives: Positives) -> Gradient:
    r"""Mean of :math:`-y \log f - (1 - y) \log(1 - f)`; scores are kept 1e-15 away from 0 and 1."""
    scores = np.clip(positives.table.scores, 1e-15, 1 - 1e-15)
    by_positives = np.log1p(-scores) - np.log(scores)
    by_shares = -np.log1p(-scores)
    value = positives.masses @ by_positives + positives.table.shares @ by_shares
    return Gradient(float(value), by_positives, by_shares)


def auc(positives: Positives) -> Gradient:
    r"""Probability that a positive scores above a negative, ties counting one half.

    .. math:: \mathrm{AUC} = \frac{E[y F(f)] - p^2 / 2}{p (1 - p)},

    where :math:`F` is the mid-distribution function of all scores. NaN if there is one class only.
    """
    shares, masses, prior = positives.table.shares, positives.masses, positives.prior
    below = np.cumsum(shares) - shares / 2
    scale = prior * (1 - prior) if 1e-9 < prior < 1 - 1e-9 else np.nan
    value = (masses @ below - prior**2 / 2) / scale
    by_positives = (below - prior - value * (1 - 2 * prior)) / scale
    # An instance raises the rank of every positive above it.
    above = masses.sum() - np.cumsum(masses) + masses / 2
    return Gradient(float(value), by_positives, above / scale)


def average_precision(positives: Positives) -> Gradient:
    r"""Precision averaged over the positives, :math:`\sum_t P_t (R_t - R_{t-1})`; NaN without any.

    Products of masses at the same scores are corrected for their common error (D15).
    """
    shares, masses = positives.table.shares, positives.masses
    prior = positives.prior if positives.prior > 1e-9 else np.nan
    chosen = np.cumsum(shares[::-1])[::-1]
    precision = np.cumsum(masses[::-1])[::-1] / chosen
    value = (masses @ precision - _squared_error(positives, chosen)) / prior
    to_lower = np.cumsum(masses / chosen)
    by_positives = (precision + to_lower - value) / prior
    by_shares = -np.cumsum(masses * precision / chosen) / prior

    def second(direction: Array) -> float:
        total = direction.sum()
        products = direction @ (np.cumsum(direction[::-1])[::-1] / chosen)
        cross = direction @ (precision + to_lower) * total
        return float(2 * (products / prior - cross / prior**2 + value * total**2 / prior**2))

    return Gradient(float(value), by_positives, by_shares, second)


def positives_above(positives: Positives, cut: float) -> Gradient:
    """Share of the positives that score above a cut: a point of the ROC curve."""
    above = (positives.table.scores > cut).astype(float)
    rate = positives.masses @ above / positives.prior
    return Gradient(float(rate), (above - rate) / positives.prior, 0 * above)


def positives_inside(positives: Positives, inside: Array) -> Gradient:
    """Share of positives among the instances at some scores: a point of the calibration curve."""
    share = positives.table.average(inside)
    rate = positives.masses @ inside / share
    return Gradient(float(rate), inside / share, -rate * inside / share)


def _squared_error(positives: Positives, chosen: Array) -> float:
    """Sum over scores of Cov(mass there, mass from there up), per share from there up."""
    table = positives.table
    pairs = positives.variance * (1 - 1 / table.sizes) + table.sizes * table.noise
    per_bag = positives.weights**2 @ pairs
    return float(per_bag * (table.shares @ ((1 - chosen) / chosen)))


SCORE_METRICS: dict[str, Callable[[Positives], Gradient]] = {
    "log_loss": log_loss,
    "auc": auc,
    "average_precision": average_precision,
}


def score_metric(
    found: Gradient,
    positives: Positives,
    *,
    confidence: float = 0.95,
    noise_kurtosis: float = LAPLACE_KURTOSIS,
    highest: float = 1.0,
    reason: str = "",
) -> Estimate:
    """Estimate of a metric of scores, with an interval unless there is a `reason` against it."""
    gradients = found.by_positives, found.by_shares
    spread = spread_of(positives, *gradients, noise_kurtosis=noise_kurtosis)
    if found.second is not None:
        direction = mass_covariance(positives, *gradients)
        cube = max(spread.deviation, 1e-100) ** 3
        spread = replace(spread, curvature=found.second(direction) / cube)
    ends = studentised_interval(found.value, spread, confidence=confidence)
    return Estimate(
        found.value,
        *((np.nan, np.nan) if reason else ends),
        spread.deviation,
        highest=highest,
        n_bags=positives.table.n_bags,
        confidence=confidence,
        reason=reason,
    )


def metrics_of_scores(
    positives: Positives, *, reason: str = "", **options: Any
) -> dict[str, Estimate]:
    """All metrics of scores; `reason` suppresses the interval of the average precision."""
    ranges: dict[str, Any] = {
        "log_loss": {"highest": np.inf},
        "average_precision": {"reason": reason},
    }
    return {
        name: score_metric(metric(positives), positives, **ranges.get(name, {}), **options)
        for name, metric in SCORE_METRICS.items()
    }


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
    largest = _folded_mean(gaps, deviations)
    high, _ = _error_at(total, largest, signs, errors, tail)
    if not high:  # A sum below what noise alone makes does not show that there is no error.
        usual = float(np.median(np.abs(errors).sum(axis=1)))
        high, _ = _error_at(usual, largest, signs, errors, tail)
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
