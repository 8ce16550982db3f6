"""Weights of bags by their information about the risk, and the unbiased weighted estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbag.arrays import Array
from unbag.evaluation.intervals import ResidualMoments, square_cumulants

# D3. Fewer bags cannot afford to have their weights learned from one half and used on the other.
MIN_BAGS_TO_SPLIT = 8


@dataclass(frozen=True)
class Fit:
    """An estimated risk with its components."""

    risk: float  # mean square of an instance's residual, unbiased
    variance: float  # of an instance's residual, unbiased
    mean: Array  # residual, (n_outputs,)
    weights: Array  # with which the square of each bag's residual varies the estimate
    shares: Array  # with which each bag's residual varies the mean


def weighted_fit(
    residuals: Array, sizes: Array, noise: Array, weights: Array, mean_weights: Array
) -> Fit:
    """Estimate the mean instance square loss with any weights (D1).

    Unbiased for weights that do not depend on the residuals. Weights one and mean weights equal to
    the sizes give the pairwise rule.
    """
    shares, weights = mean_weights / mean_weights.sum(), weights / weights.sum()
    mean = shares @ residuals
    spread = (weights * sizes) @ ((residuals - mean) ** 2).sum(axis=1)
    n_outputs = residuals.shape[1]
    per_variance = weights @ (1 - 2 * shares) + (weights @ sizes) * (shares**2 @ (1 / sizes))
    from_noise = (weights * sizes) @ ((1 - 2 * shares) * noise + shares**2 @ noise)
    variance = float(spread - n_outputs * from_noise) / per_variance
    in_mean = variance * (shares**2 @ (1 / sizes)) + n_outputs * (shares**2 @ noise)
    # D2. Subtracting the mean shrinks each square's variance by 1 - v_i, and its expectation as
    # above.
    effective = weights * np.sqrt(1 - shares) / per_variance
    return Fit(float(variance + mean @ mean - in_mean), variance, mean, effective, shares)


def group_bags(sizes: Array, noise: Array) -> tuple[Array, Array, Array]:
    """Sizes and noises of the kinds of bags, and the kind of each; many are grouped (D3)."""
    kinds, where = np.unique(np.stack([sizes, noise]), axis=1, return_inverse=True)
    where = where.reshape(-1)
    if kinds.shape[1] > 40:
        level = np.round(np.log(np.stack([sizes, sizes * noise + 1e-12])) / 0.08)
        where = np.unique(level, axis=1, return_inverse=True)[1].reshape(-1)
        counts = np.bincount(where)
        kinds = np.stack([np.bincount(where, v) / counts for v in (sizes, noise)])
    return kinds[0], kinds[1], where


def optimal_weights(
    risk: float, sizes: Array, noise: Array, law: ResidualMoments
) -> tuple[Array, Array]:
    """Weights of squares and of means with the least variance at a given risk (D3).

    Without noise large bags have equal weights, and small ones are weighted by their size.
    """
    spread, _ = square_cumulants(law, np.array(risk), sizes, noise)
    # D3. At the highest risk a single instance is always wrong, and its square does not vary at
    # all: a risk that came out as high by chance must not leave all the weight to bags of one.
    spread = np.maximum(spread, 0.1 * risk**2)
    return 1 / spread, 1 / (risk * law.variance / sizes + noise)


def fit_variance(
    residuals: Array,
    sizes: Array,
    noise: Array,
    *,
    law: ResidualMoments,
    weights: Literal["optimal", "size"] = "optimal",
) -> Fit:
    """Estimate the risk from residuals of shape (n_bags, n_outputs), weighting the bags.

    Optimal weights depend on the risk. It is taken from the other half of the bags, so that weights
    are independent of the residuals they multiply and the estimate stays unbiased.
    """
    alike = (sizes == sizes[0]).all() and (noise == noise[0]).all()
    if weights == "size" or alike or len(sizes) < MIN_BAGS_TO_SPLIT:
        return weighted_fit(residuals, sizes, noise, np.ones_like(sizes), sizes)
    # Every second bag in order of size and noise: two halves alike, chosen without the residuals.
    order = np.lexsort((noise, sizes))
    halves, fits = (order[::2], order[1::2]), []
    for own, other in (halves, halves[::-1]):
        given = residuals[other], sizes[other], noise[other]
        pilot = weighted_fit(*given, np.ones(len(other)), sizes[other])
        # A pilot of zero would make weights infinite, so it is replaced by less than one error.
        risk = max(pilot.risk, 1 / sizes[other].sum())
        best = optimal_weights(risk, sizes[own], noise[own], law)
        fits.append(weighted_fit(residuals[own], sizes[own], noise[own], *best))
    return _joined(fits, halves, len(sizes))


def fit_each_part(
    residuals: Array,
    sizes: Array,
    noise: Array,
    parts: Sequence[Array],
    *,
    law: ResidualMoments,
    weights: Literal["optimal", "size"] = "optimal",
) -> tuple[Fit, Array]:
    """Mean risk of several models, each from a part of the bags, and residuals with a common mean.

    Only bags of one part are paired, because differences between the mean residuals of models would
    pass for errors of single instances.
    """
    fits = [
        fit_variance(residuals[own], sizes[own], noise[own], law=law, weights=weights)
        for own in parts
    ]
    joined, aligned = _joined(fits, parts, len(sizes)), residuals.copy()
    for own, fit in zip(parts, fits, strict=True):
        aligned[own] += joined.mean - fit.mean
    return joined, aligned


def _joined(fits: Sequence[Fit], parts: Sequence[Array], n_bags: int) -> Fit:
    portions = [len(own) / n_bags for own in parts]
    weights, shares = np.empty(n_bags), np.empty(n_bags)
    for portion, fit, own in zip(portions, fits, parts, strict=True):
        weights[own], shares[own] = portion * fit.weights, portion * fit.shares
    return Fit(
        risk=float(np.dot(portions, [fit.risk for fit in fits])),
        variance=float(np.dot(portions, [fit.variance for fit in fits])),
        mean=np.dot(portions, [fit.mean for fit in fits]),
        weights=weights,
        shares=shares,
    )
