r"""Intervals for smooth functions of where the positives are.

A metric with gradient :math:`G` by the mass of positives and :math:`A` by the share of instances
has error :math:`\sum_i \pi_i k_i z_i u_i` (products of distinct instances in one bag) plus the
average of :math:`y G + A` over instances. Both have known variance and skewness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from unbag.arrays import Array
from unbag.evaluation.intervals import pearson_quantile
from unbag.evaluation.positives import Positives

# D18. Fewer bags do not show the residual's distribution: intervals then reach as far as the
# jackknife's.
FEW_BAGS = 16


@dataclass(frozen=True)
class Spread:
    """How an estimate scatters."""

    deviation: float
    skewness: float  # of the estimate's linear part
    freedom: float  # degrees of freedom of the deviation
    # What the metric's second derivative H adds to a third of the skewness: with gradient d and
    # covariance S of the masses, d' S H S d / deviation**3.
    curvature: float = 0.0


def spread_of(
    positives: Positives, gradient: Array, share_gradient: Array, *, noise_kurtosis: float = 0.0
) -> Spread:
    """Spread of a metric, by its gradients by positives and by instances at each score (D13)."""
    linear, half = paired_factor(positives, gradient)
    table, chances = positives.table, positives.chances
    # The working joint law of score and label: a row at label 0, and one at label 1.
    law = np.stack([1 - chances, chances]) * table.shares
    residual = np.stack([0 - positives.control, 1 - positives.control])
    instance = np.stack([share_gradient, gradient + share_gradient])
    instance = instance - _mean(law, instance)
    factor = linear - half * residual
    variance, third = _pair_cumulants(positives, linear, half, noise_kurtosis)
    weights, sizes = positives.weights, table.sizes
    # Averages weight all instances alike, products within a bag weight them as the bag.
    own = residual * factor
    own = own - _mean(law, own)
    variance += _mean(law, instance**2) / table.n_instances
    variance += _mean(law, own**2) * float(weights**2 @ (1 / sizes) - 1 / table.n_instances)
    variance += table.average(gradient) ** 2 * float(table.noise @ (sizes / sizes.sum()) ** 2)
    third += _mean(law, instance**3) / table.n_instances**2
    third += _mean(law, own**3) * float(weights**3 @ sizes**-2.0 - table.n_instances**-2.0)
    third += _mixed_third(positives, law, residual, factor, instance)
    # D14. Products of two normal variables and Student's law each add about 6 / n to the kurtosis.
    freedom = 1 / (1 / table.freedom + 1 / table.n_bags)
    # Equal scores make no metric vary, whatever the labels.
    return Spread(float(np.sqrt(variance)), float(third / max(variance, 1e-30) ** 1.5), freedom)


def _mean(law: Array, values: Array) -> float:
    return float((law * values).sum())


def paired_factor(positives: Positives, gradient: Array) -> tuple[Array, float]:
    """What meets the residual in a bag: its part that is linear in the score, and half of e's."""
    centred, control, slope, _ = _along_control(positives, gradient)
    return centred - slope * positives.mix * control, slope * positives.mix / 2


def _along_control(positives: Positives, gradient: Array) -> tuple[Array, Array, float, float]:
    """Gradient and control, of mean zero, the slope of one on the other, the control's variance."""
    table = positives.table
    centred = gradient - table.average(gradient)
    control = positives.control - table.average(positives.control)
    explained = max(float(table.average(control**2)), 1e-12)
    return centred, control, table.average(centred * control) / explained, explained


def _mixed_third(
    positives: Positives, law: Array, residual: Array, factor: Array, instance: Array
) -> float:
    """Third cumulant of two products of two instances and an instance's own part (D13)."""
    weights, sizes = positives.weights, positives.table.sizes
    mixed = (
        _mean(law, residual**2 * instance) * _mean(law, factor**2)
        + 2 * _mean(law, residual * factor) * _mean(law, residual * factor * instance)
        + positives.variance * _mean(law, factor**2 * instance)
    )
    return 3 * mixed * float(weights**3 @ ((1 - 1 / sizes) / sizes))


def _pair_cumulants(
    positives: Positives, linear: Array, half: float, noise_kurtosis: float
) -> tuple[float, float]:
    table = positives.table
    pairs, added = 1 - 1 / table.sizes, table.sizes * table.noise
    linear_square = float(table.average(linear**2))
    scale = positives.variance * pairs + added
    # The residuals of the fit still covary with what the control leaves out.
    leftover = float(
        (positives.weights * table.sizes * positives.residuals) @ table.bag_mean(linear)
    )
    full = positives.variance + added
    # D5. Noise with heavier tails than the normal: its square has third cumulant 8 + 12 K4 + K6.
    tails = 12 * noise_kurtosis + 30 * (noise_kurtosis / 3) ** 2
    cube = 8 * full**3 + tails * added**3
    w, v = positives.weights, positives.square_weights
    variance = w**2 @ (scale * linear_square + leftover**2 * pairs)
    variance += half**2 * variance_error(positives, noise_kurtosis=noise_kurtosis) ** 2
    third = w**3 @ (pairs * 2 * leftover * (3 * full * linear_square + leftover**2))
    third -= (w**2 * v) @ (pairs * 6 * half * full**2 * linear_square)
    third -= v**3 @ (pairs * half**3 * cube)
    return float(variance) * table.lost, float(third)


def outer_ends(
    ends: tuple[float, float], value: float, contributions: Array, *, confidence: float
) -> tuple[float, float]:
    """Outer ends of a derived interval and of the infinitesimal jackknife's (D18).

    Each bag contributes its part to the estimate.
    """
    n_bags, centred = len(contributions), contributions - contributions.mean()
    variance = max(float(centred @ centred), 1e-30)
    deviation = float(np.sqrt(variance * n_bags / (n_bags - 1)))
    freedom = n_bags - 1 if n_bags >= 6 else (n_bags - 1) / 2
    spread = Spread(deviation, float((centred**3).sum()) / variance**1.5, freedom)
    low, high = studentised_interval(value, spread, confidence=confidence)
    return min(ends[0], low), max(ends[1], high)


def variance_error(positives: Positives, *, noise_kurtosis: float = 0.0) -> float:
    """Standard deviation of the residual variance that the bags show (D13)."""
    table, variance = positives.table, positives.variance
    pairs, added = 1 - 1 / table.sizes, table.sizes * table.noise
    square = 2 * variance**2 * pairs + 4 * variance * added + (2 + noise_kurtosis) * added**2
    return float(np.sqrt(positives.square_weights**2 @ square))


def mass_covariance(
    positives: Positives, gradient: Array, share_gradient: Array, *, offset: Any = 0.0
) -> Array:
    """Covariance of the mass of ``y - offset`` at each score with a metric of these gradients."""
    table, chances = positives.table, positives.chances
    centred, control, slope, explained = _along_control(positives, gradient)
    # D13. The part along the control is known through the residuals' variance, the rest by
    # regression.
    along = (1 - positives.mix) ** 2 + positives.mix**2 * positives.variance / (2 * explained)
    pairs = positives.variance * (1 - 1 / table.sizes) + table.sizes * table.noise
    paired = (positives.weights**2 @ pairs) * (centred - (1 - along) * slope * control)
    mean = table.average(chances * gradient + share_gradient)
    single = chances * (1 - offset) * (gradient + share_gradient - mean)
    single = single - (1 - chances) * offset * (share_gradient - mean)
    return table.shares * (table.lost * paired + single / table.n_instances)


def studentised_interval(
    value: float, spread: Spread, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of an estimate whose standard error grows with it, given its skewness (D15)."""
    tail = (1 - confidence) / 2
    skewness, curvature = np.clip([spread.skewness, spread.curvature], -1.5, 1.5)
    widening = special.stdtrit(spread.freedom, 1 - tail) / special.ndtri(1 - tail)
    widening *= np.sqrt(1 + skewness**2 / 2)
    shift = skewness / 2 + curvature
    quantiles = pearson_quantile(np.array([tail, 1 - tail]), 2 * skewness + 3 * curvature)
    low, high = value + spread.deviation * (shift + widening * quantiles)
    return float(low), float(high)
