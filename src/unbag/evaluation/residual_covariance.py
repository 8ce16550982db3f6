"""Averages of what labels exceed a guess by, times a known number of each instance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags

__all__ = ["residual_product"]

Array = NDArray[Any]


def residual_product(
    weights: Array, guesses: Array, bags: Bags, noise: Array
) -> tuple[float, float]:
    r"""Estimate :math:`E[\sum_c w_c (y_c - g_c)]` from bags, unbiased whatever the guesses.

    With bag means :math:`r_i` of the residuals and :math:`w_i` of the weights, it is the product of
    their averages and their covariance, which is made by instances that lie in both.

    Parameters
    ----------
    weights, guesses : array of shape (n_instances, n_outputs)
        In the order of the bags, ``bags.rows``.
    bags : Bags
    noise : array of shape (n_bags,)
        Variance of the noise in the proportions.

    Returns
    -------
    value : float
    variance : float
        Of residuals that meet the weights of other instances, and of noise. What an instance's own
        residual and weight add, the variance of their product over the number of instances, is
        left to the caller, who may know more of it.
    """
    sizes, n_bags = bags.sizes.astype(float), bags.n_bags
    n_instances = sizes.sum()
    shares = sizes / n_instances
    of_bags = np.add.reduceat(np.hstack([weights, guesses]), bags.starts) / sizes[:, None]
    mean_weights, mean_guesses = np.hsplit(of_bags, 2)
    residuals = bags.proportions.reshape(n_bags, -1) - mean_guesses
    gap, level = shares @ residuals, shares @ mean_weights
    centred = residuals - gap
    products = sizes @ (centred * (mean_weights - level)).sum(axis=1)
    value = gap @ level + products / (n_bags - 1) * (1 - 1 / n_instances)
    spread = np.atleast_2d(np.cov(weights.T))
    covariance = (centred * sizes[:, None]).T @ centred / (n_bags - 1)
    # D22. Products of an instance with itself are the caller's; those of noise and an instance are
    # not.
    others = 1 - n_bags / n_instances
    paired = others * np.trace(covariance @ spread)
    paired += (1 - others) * np.mean(sizes * noise) * np.trace(spread)
    return float(value), float(paired / n_bags + (shares**2 @ noise) * (level @ level))
