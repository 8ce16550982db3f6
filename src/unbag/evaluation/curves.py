"""Metrics of scores, each with its gradients by the positives and by the instances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from unbag.arrays import Array
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.intervals import LAPLACE_KURTOSIS
from unbag.evaluation.positives import Positives
from unbag.evaluation.spread import mass_covariance, spread_of, studentised_interval


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
        spread = replace(spread, curvature=found.second(direction) / spread.deviation**3)
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


def score_metrics(positives: Positives, *, reason: str = "", **options: Any) -> dict[str, Estimate]:
    """All metrics of scores; `reason` suppresses the interval of the average precision."""
    ranges: dict[str, Any] = {
        "log_loss": {"highest": np.inf},
        "average_precision": {"reason": reason},
    }
    return {
        name: score_metric(metric(positives), positives, **ranges.get(name, {}), **options)
        for name, metric in SCORE_METRICS.items()
    }
