"""Squared error, R2 and bias of predicted amounts, from averages of bags alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.arguments import check_share
from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.evaluation.jackknife import jackknife_estimate
from unbag.evaluation.residual_moments import noise_of
from unbag.evaluation.results import AmountEvaluation

__all__ = ["evaluate_amounts"]

Array = NDArray[Any]


def evaluate_amounts(predictions: Any, bags: Bags, *, confidence: float = 0.95) -> AmountEvaluation:
    r"""Evaluate predictions of single amounts, in the order of ``bags.X``; see `unbag.evaluate`.

    Notes
    -----
    For bags that are random draws the mean squared error is `unbag.evaluation.pairwise_value` of
    the bag residuals, which is unbiased for any real response. R2 is one minus its ratio to the
    variance of single amounts, which is estimated the same way. Intervals are the jackknife's over
    bags (D27).
    """
    check_share("confidence", confidence)
    residuals = bags.mean(_checked(predictions, bags)) - bags.proportions
    sizes, noise = bags.sizes.astype(float), noise_of(bags)
    # Averages enter centred, which changes no variance and keeps the digits of large amounts.
    values = np.stack([residuals, bags.proportions - bags.prior], axis=1)
    weighted = sizes[:, None] * np.concatenate([values, values**2], axis=1)
    ones = np.ones_like(sizes)
    sums = np.column_stack([ones, sizes, sizes * noise, sizes**2 * noise, weighted])
    estimates = {
        "mse": jackknife_estimate(_square, sums, confidence=confidence, lowest=0.0),
        "r2": jackknife_estimate(_explained, sums, confidence=confidence, below_one=True),
        "bias": jackknife_estimate(lambda s: s[..., 4] / s[..., 1], sums, confidence=confidence),
    }
    return AmountEvaluation(estimates, residuals, bags.n_bags, bags.n_instances, confidence)


def _variances(sums: Array) -> Array:
    """Variance of an instance's residual, and of its amount, without noise (D27)."""
    n_bags, size, noise, squared = (sums[..., i, None] for i in range(4))
    spread = sums[..., 6:] - sums[..., 4:6] ** 2 / size - noise + squared / size
    return np.asarray(spread / (n_bags - 1))


def _square(sums: Array) -> Any:
    variance, size = _variances(sums)[..., 0], sums[..., 1]
    return variance * (1 - 1 / size) + (sums[..., 4] / size) ** 2 - sums[..., 3] / size**2


def _explained(sums: Array) -> Any:
    variance = _variances(sums)[..., 1]
    return 1 - _square(sums) / np.where(variance > 0, variance, np.nan)


def _checked(predictions: Any, bags: Bags) -> Array:
    values = np.asarray(predictions, dtype=float)
    if values.size != len(bags.X) or not np.isfinite(values).all():
        raise BagDataError(
            f"predictions must be {len(bags.X)} finite numbers, one per instance of bags.X, got "
            f"shape {values.shape}, of which {np.isfinite(values).sum()} are finite."
        )
    return values.reshape(-1)
