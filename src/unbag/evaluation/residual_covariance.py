"""Averages of what labels exceed a guess by, times a known number of each instance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.evaluation.residual_moments import noise_of

__all__ = ["residual_product", "risk_change"]

Array = NDArray[Any]


def residual_product(weights: Array, guesses: Array, bags: Bags) -> tuple[float, float]:
    r"""Estimate :math:`E[\sum_c w_c (y_c - g_c)]` from bags, unbiased whatever the guesses.

    With bag means :math:`r_i` of the residuals and :math:`w_i` of the weights, it is the product of
    their averages and their covariance, which is made by instances that lie in both.

    Parameters
    ----------
    weights, guesses : array of shape (n_instances, n_outputs)
        In the order of the bags, ``bags.rows``.
    bags : Bags

    Returns
    -------
    value : float
    variance : float
        Of residuals that meet the weights of other instances, and of noise. What an instance's own
        residual and weight add, the variance of their product over the number of instances, is
        left to the caller, who may know more of it.
    """
    sizes, n_bags, noise = bags.sizes.astype(float), bags.n_bags, noise_of(bags)
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


def risk_change(
    change: Array, squares: Array, guesses: Array, bags: Bags
) -> tuple[float, float, float]:
    r"""Change of the square risk, :math:`E[s - 2 d y]` summed over outputs, of other predictions.

    Parameters
    ----------
    change, squares : array of shape (n_instances, n_outputs)
        Change :math:`d` of each prediction and :math:`s` of its square, in the order ``bags.rows``.
    guesses : array of shape (n_instances, n_outputs)
        Of the labels.

    Returns
    -------
    value : float
    beyond : float
        :math:`E[d (y - g)]` for guesses :math:`g`.
    variance : float
        Of the value. It assumes no calibration: an instance's own part is linear in the label too,
        and its square is taken from the bags where they show more of it than the guesses.
    """
    beyond, paired = residual_product(change, guesses, bags)
    value = (squares - 2 * change * guesses).sum(axis=1).mean() - 2 * beyond
    # D23. Of several classes exactly one is true, which makes the square of their sum linear in y.
    if bags.task == "multiclass":
        constant, slope = 0.0, (squares.sum(axis=1, keepdims=True) - 2 * change) ** 2
    else:
        constant, slope = (squares**2).sum(axis=1).mean(), 4 * change * (change - squares)
    own = constant + (slope * guesses).sum(axis=1).mean()
    own += max(residual_product(slope, guesses, bags)[0], 0)
    return float(value), beyond, float(4 * paired + own / bags.n_instances)
