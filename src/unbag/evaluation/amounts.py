"""Squared error, R2, calibration and deviance of predicted amounts, from averages alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import xlogy

from unbag.arguments import check_share
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.validation import are_whole_counts
from unbag.errors import BagDataError
from unbag.evaluation.estimate import Estimate, jackknife_estimate
from unbag.evaluation.residual_moments import noise_of
from unbag.evaluation.results import AmountEvaluation


def evaluate_amounts(predictions: Any, bags: Bags, *, confidence: float = 0.95) -> AmountEvaluation:
    """Evaluate predictions of single amounts, in the order of ``bags.X``; see `unbag.evaluate`.

    The mean squared error is `unbag.evaluation.pairwise_value` of the bag residuals, and R2 one
    minus its ratio to the variance of single amounts, estimated the same way (D27). With weighted
    averages a bag's size is `Bags.effective_sizes`. The deviance is given where totals of bags are
    whole numbers and predictions positive.
    """
    means = _mean_predictions(predictions, bags, confidence)
    residuals = means - bags.proportions
    sizes, noise = bags.effective_sizes, noise_of(bags)
    # Averages enter centred, which changes no variance and keeps the digits of large amounts.
    values = np.stack([residuals, bags.proportions - bags.prior], axis=1)
    weighted = sizes[:, None] * np.concatenate([values, values**2], axis=1)
    ones, jackknife = np.ones_like(sizes), partial(jackknife_estimate, confidence=confidence)
    sums = np.column_stack([ones, sizes, sizes * noise, sizes**2 * noise, weighted])
    whole = sums.sum(axis=0) * [1, 1, 0, 0, 1, 1, 1, 1]  # D27. With the noise left in.
    added = float(_square(whole) - _square(sums.sum(axis=0)))
    least = _normal_deviation(whole)
    estimates = {
        "mse": jackknife(_square, sums, lowest=0.0, least=least, added=added),
        "r2": jackknife(_explained, sums, below_one=True, ratio=_parts if noise.any() else None),
        "bias": jackknife(lambda s: s[..., 4] / s[..., 1], sums),
    }
    centred, averages = means - means.mean(), values[:, 1]
    products = np.column_stack([ones, centred**2, centred * averages, centred, averages])
    estimates["slope"] = jackknife(_slope, sizes[:, None] * products)
    estimates |= _deviances(means, bags, jackknife)
    return AmountEvaluation(estimates, residuals, bags.n_bags, bags.n_instances, confidence)


def evaluate_averages(
    predictions: Any, bags: Bags, *, confidence: float = 0.95, grouping: str = ""
) -> AmountEvaluation:
    """Evaluate mean predictions of natural groups, where the error of single amounts is unknown.

    "group_mse" is the mean squared error of averages, weighted by the size of the group: a lower
    limit of that of single amounts, by Jensen's inequality. "group_r2" is one minus its ratio to
    the variance of averages.
    """
    means = _mean_predictions(predictions, bags, confidence)
    residuals, centred = means - bags.proportions, means - means.mean()
    averages, totals = bags.proportions - bags.prior, bags.totals.astype(float)
    columns = [residuals, residuals**2, averages, averages**2, noise_of(bags)]
    ones = np.ones_like(totals)
    sums = totals[:, None] * np.column_stack([ones, *columns])
    products = np.column_stack([ones, centred**2, centred * averages, centred, averages])
    jackknife = partial(jackknife_estimate, confidence=confidence)
    estimates = {
        "group_mse": jackknife(lambda s: _group_parts(s)[0], sums, lowest=0.0),
        "group_r2": jackknife(_explained_between, sums, below_one=True),
        "bias": jackknife(lambda s: s[..., 1] / s[..., 0], sums),
        "slope": jackknife(_slope, totals[:, None] * products),
    } | _deviances(means, bags, jackknife)
    found = estimates, residuals, bags.n_bags, bags.n_instances, confidence
    return AmountEvaluation(*found, grouping=grouping)


def _mean_predictions(predictions: Any, bags: Bags, confidence: float) -> Array:
    """Mean prediction of each bag, of predictions in the order of its instances."""
    check_share("confidence", confidence)
    values = np.asarray(predictions, dtype=float).reshape(-1)
    if len(values) != len(bags.X) or not np.isfinite(values).all():
        raise BagDataError(
            f"predictions must be {len(bags.X)} finite numbers, one per instance of bags.X, got "
            f"shape {np.shape(predictions)}, of which {np.isfinite(values).sum()} are finite."
        )
    return np.asarray(bags.mean(values))


def _group_parts(sums: Array) -> tuple[Any, Any]:
    """Squared error and variance of averages, without noise."""
    total, _, square, average, squared_average, noise = (sums[..., i] for i in range(6))
    variance = squared_average / total - (average / total) ** 2
    return (square - noise) / total, variance - noise / total


def _explained_between(sums: Array) -> Any:
    square, variance = _group_parts(sums)
    return 1 - square / np.where(variance > 0, variance, np.nan)


def _slope(sums: Array) -> Any:
    """Of averages on mean predictions, from sums of sizes, products and both alone."""
    size, square, product, mean, average = (sums[..., i] for i in range(5))
    return (product - mean * average / size) / (square - mean**2 / size)


def _deviances(means: Array, bags: Bags, jackknife: Callable[..., Estimate]) -> dict[str, Estimate]:
    """Poisson deviance per bag, and the share of it that predictions explain; {} for others."""
    events, expected = bags.totals * bags.proportions, bags.totals * means
    whole = are_whole_counts(bags.proportions[:, None], bags.totals).all()
    if bags.noise_variance is not None or not whole or (events < 0).any() or (expected <= 0).any():
        return {}
    own = 2 * (xlogy(events, events / expected) - events + expected)
    logs = 2 * xlogy(events, events / bags.totals)
    sums = np.column_stack([np.ones_like(own), own, logs, events, bags.totals])

    def explained(s: Array) -> Any:
        return 1 - s[..., 1] / (s[..., 2] - 2 * xlogy(s[..., 3], s[..., 3] / s[..., 4]))

    return {
        "deviance": jackknife(lambda s: s[..., 1] / s[..., 0], sums, lowest=0.0),
        "explained_deviance": jackknife(explained, sums, below_one=True),
    }


def _variances(sums: Array) -> Array:
    """Variance of an instance's residual, and of its amount, without noise (D27)."""
    n_bags, size, noise, squared = (sums[..., i, None] for i in range(4))
    spread = sums[..., 6:] - sums[..., 4:6] ** 2 / size - noise + squared / size
    return np.asarray(spread / (n_bags - 1))


def _square(sums: Array) -> Any:
    variance, size = _variances(sums)[..., 0], sums[..., 1]
    return variance * (1 - 1 / size) + (sums[..., 4] / size) ** 2 - sums[..., 3] / size**2


def _normal_deviation(sums: Array) -> float:
    """Deviation of the squared error's logarithm if residuals of bags are normal (D27)."""
    spread = max(_variances(sums)[0], 0) / max(_square(sums), 1e-300)
    return float(np.sqrt(2 / (sums[0] - 1)) * spread)


def _parts(sums: Array) -> tuple[Any, Any]:
    return _square(sums), _variances(sums)[..., 1]


def _explained(sums: Array) -> Any:
    square, variance = _parts(sums)
    return 1 - square / np.where(variance > 0, variance, np.nan)
