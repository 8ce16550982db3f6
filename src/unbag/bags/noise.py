"""Noise and rounding of proportions: detect unstated rounding, reject implausible variances."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
from scipy import stats

from unbag.arrays import Array
from unbag.bags.validation import are_whole_counts
from unbag.errors import BagDataError, BagDataWarning

FALSE_ALARMS, BY_CHANCE = 1e-5, 1e-3
# Smaller noise may be hidden: proportions may be rounded to 0 and 1, counts to integers.
ROUNDING, FEW_LABELS = 1 / 12, 10
ROUNDING_STEPS = (0.5, 0.25, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 1e-3, 1e-4, 1e-5, 1e-6)
SINGLE_PRECISION = 1e-7


def rounding_grid(proportions: Array, sizes: Array) -> tuple[float, float]:
    """Coarsest decimal step of which all proportions are multiples, and the probability of that.

    The step is 0 if there is none, or if whole counts are no finer. The probability is a
    bound for exact proportions of these bags, and 0 if some proportion is not a whole count.
    """
    shares = proportions.reshape(len(sizes), -1)
    step = _decimal_step(shares)
    if not are_whole_counts(shares, sizes).all():
        return step, 0.0 if step else 1.0
    coarser = step * sizes > 1 + 1e-6
    if not coarser.any() or np.ptp(shares, axis=0).max() < SINGLE_PRECISION:
        return 0.0, 1.0
    chances = [_chance_of_multiples(a[coarser], sizes[coarser], step) for a in shares.T]
    return step, min(1.0, len(ROUNDING_STEPS) * min(chances))


def exact_shares(proportions: Array, sizes: Array) -> Array:
    """Proportions as whole counts, where each was written with enough decimals to tell its count.

    They are left as they are if some are no rounded counts, or all could be so by chance: about a
    share ``step * size`` of all decimals are.
    """
    shares = proportions.reshape(len(sizes), -1)
    step, rounded = _decimal_step(shares), ~are_whole_counts(shares, sizes)
    if not rounded.any() or not step or (step * sizes >= 1).any():
        return proportions
    exact = np.rint(shares * sizes[:, None]) / sizes[:, None]
    meant = (np.abs(exact - shares) <= step / 2 + SINGLE_PRECISION).all()
    by_chance = np.log(step * sizes[rounded]).sum() > np.log(BY_CHANCE)
    return proportions if by_chance or not meant else exact.reshape(proportions.shape)


def _decimal_step(shares: Array) -> float:
    """Coarsest decimal step of which all proportions are multiples, or 0."""
    return next((step for step in ROUNDING_STEPS if _are_multiples(shares, step)), 0.0)


def _are_multiples(values: Array, step: float) -> bool:
    return bool((np.abs(values - step * np.round(values / step)) < SINGLE_PRECISION).all())


def _chance_of_multiples(proportions: Array, sizes: Array, step: float) -> float:
    """Probability that counts strictly inside are multiples; the larger of two models."""
    prior = float(np.clip(sizes @ proportions / sizes.sum(), 1e-9, 1 - 1e-9))
    inside = (proportions > SINGLE_PRECISION) & (proportions < 1 - SINGLE_PRECISION)
    logs = 0.0
    for size, number in zip(*np.unique(sizes[inside], return_counts=True), strict=True):
        points = np.arange(step, 1 - step / 2, step) * size
        points = np.round(points[np.abs(points - points.round()) < 1e-6 * size])
        all_inside = max(1 - prior**size - (1 - prior) ** size, 1e-300)
        binomial = stats.binom.pmf(points, size, prior).sum() / all_inside
        logs += number * np.log(min(1.0, max(binomial, len(points) / (size - 1), 1e-300)))
    return float(np.exp(logs))


def read_rounding(noise_variance: Any, proportions: Array, sizes: Array) -> Array:
    """Noise variance of each bag for "rounding": a step ``s`` adds the variance ``s**2 / 12``."""
    if noise_variance != "rounding":
        raise BagDataError(
            f"noise_variance must hold numbers or be 'rounding', got {noise_variance!r}."
        )
    step, chance = rounding_grid(proportions, sizes)
    if not step or chance > 0.05:
        raise BagDataError(
            "noise_variance='rounding' needs proportions that were rounded, but these are no "
            "multiples of a decimal step coarser than whole counts. Pass the variance itself, "
            "step**2 / 12, or nothing if they are exact."
        )
    return np.full(len(sizes), step**2 / 12)


def warn_of_rounding(proportions: Array, sizes: Array, ids: list[Hashable]) -> None:
    """Warn if supposedly exact proportions cannot be counts, or all lie on a coarser grid."""
    fractional = ~are_whole_counts(proportions.reshape(len(sizes), -1), sizes)
    step, chance = rounding_grid(proportions, sizes)
    if not fractional.any() and (not step or chance > FALSE_ALARMS):
        return
    if fractional.any():
        first = np.flatnonzero(fractional)[0]
        words = (
            f"bag {ids[first]!r} has proportion {proportions[first]} of {sizes[first]} instances, "
            f"which is no whole count ({fractional.sum()} such bags). "
        )
    else:
        words = f"all are multiples of {step:g}, though whole counts are finer. "
    rounded = f"If they were rounded to {step:g}, pass noise_variance='rounding'. " if step else ""
    warnings.warn(
        f"proportions: {words}{rounded}If noise was added, pass its variance as `noise_variance`. "
        "If instances are missing, the guarantees do not hold.",
        BagDataWarning,
        stacklevel=4,
    )


def check_noise_shows(proportions: Array, sizes: Array, variance: Array | None) -> None:
    """Raise if the noise variance is far larger than the variance of the proportions.

    Let t be the sum of (a_i - m)^2 / v_i over n bags, divided by n - 1, where m is the weighted
    mean. If the density of the noise is at most 1 / sqrt(2 v), the peak of Laplace noise, then the
    standardised residuals have a joint density of at most sqrt(n) 2^{-(n - 1) / 2}, whatever the
    labels add. Multiplied by the volume of a ball, this bounds the probability of a smaller t by
    (pi e t)^{(n - 1) / 2}. Integer noise may hide one label per bag, which is added to the gaps.
    """
    if variance is None:
        return
    wide = (variance > ROUNDING) & (variance * sizes**2 > FEW_LABELS)
    n_rest = int(wide.sum()) - 1
    if n_rest < 1:
        return
    values, noise = proportions.reshape(len(sizes), -1)[wide], variance[wide, None]
    gaps = (values - (values / noise).sum(axis=0) / (1 / noise).sum()) ** 2
    shown = ((gaps + 1 / sizes[wide, None] ** 2) / noise).sum(axis=0).max() / n_rest
    if shown < FALSE_ALARMS ** (2 / n_rest) / (np.pi * np.e):
        raise BagDataError(
            "noise_variance exceeds the variance of the proportions themselves "
            f"({noise.mean():.3g} against {gaps.mean():.3g}). If it is the variance of the counts, "
            "divide it by the squared bag sizes."
        )
