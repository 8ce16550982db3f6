"""The joint law of the estimated errors of hard predictions: how all their metrics scatter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.evaluation.weighting import Fit, group_bags

__all__ = ["Errors", "Metric", "gradient_of", "inside", "joint_cumulants", "law_of_metric"]

Array = NDArray[Any]
# A function of the shares of false positives, false negatives and positive predictions.
Metric = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Errors:
    """Estimated errors of hard predictions and the bags they come from.

    Attributes
    ----------
    false_positives, false_negatives, chosen : float
        Shares of all instances; `chosen` are those predicted positive.
    fit : Fit
        Risk and mean residual, with the bags' weights.
    sizes, noise : array of shape (n_bags,)
    parts : array of shape (3, n_bags)
        What each bag contributes to the variance of the residual, its mean and `chosen`.
    noise_kurtosis : float
        Of the intervals.
    """

    false_positives: float
    false_negatives: float
    chosen: float
    fit: Fit
    sizes: Array
    noise: Array
    parts: Array
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
