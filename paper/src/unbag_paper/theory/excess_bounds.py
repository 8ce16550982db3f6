"""The paper's upper bounds on the excess error as shapes: conditions checked, constants hidden.

A shape says how a bound moves with its arguments. It is not a certificate: `constant` stands for a
number the paper does not give, and logarithms hidden in its O-tilde are written out as
``log(k n)`` where the proofs have them.
"""

from __future__ import annotations

import math

from unbag.planning.conditions import check_sample, require, require_probability, require_whole

__all__ = [
    "debiased_excess_bound",
    "easy_optimistic_bound",
    "easy_slow_bound",
    "easy_split_bound",
    "marginal_bias",
    "proportion_square_bound",
]


def debiased_excess_bound(
    n_bags: int,
    bag_size: int,
    *,
    vc_dimension: int,
    best_error: float = 0.0,
    confidence: float = 0.95,
    constant: float = 1.0,
) -> float:
    r"""Excess error of the debiased square loss (Theorem 2): a shape with an unknown constant C.

    .. math:: C \left( \frac{k^2 (d \log(kn) + \log(1/\delta))}{n}
              + \sqrt{\frac{L^* k^2 (d \log(kn) + \log(1/\delta))}{n}} \right)

    Examples
    --------
    >>> round(debiased_excess_bound(100_000, 10, vc_dimension=3), 4)
    0.0444
    """
    check_sample(n_bags, vc_dimension, confidence)
    require_whole("bag_size", bag_size)
    require_probability("best_error", best_error, closed=True)
    complexity = vc_dimension * math.log(bag_size * n_bags + 1) - math.log(1 - confidence)
    rate = bag_size**2 * complexity / n_bags
    return constant * (rate + math.sqrt(best_error * rate))


def easy_optimistic_bound(
    n_bags: int,
    bag_size: int,
    *,
    vc_dimension: int,
    best_error: float = 0.0,
    confidence: float = 0.95,
    constant: float = 1.0,
) -> float:
    """Excess error of EasyLLP with a known prior: the shape of `debiased_excess_bound`.

    Examples
    --------
    >>> round(easy_optimistic_bound(100_000, 10, vc_dimension=3), 4)
    0.0444

    References
    ----------
    li2024optimistic, Theorem 3
    """
    return debiased_excess_bound(
        n_bags,
        bag_size,
        vc_dimension=vc_dimension,
        best_error=best_error,
        confidence=confidence,
        constant=constant,
    )


def easy_split_bound(
    n_bags: int,
    bag_size: int,
    *,
    vc_dimension: int,
    best_error: float = 0.0,
    confidence: float = 0.95,
    constant: float = 1.0,
) -> float:
    """Excess error of EasyLLP when half of `n_bags` estimate the prior and half the loss.

    Examples
    --------
    >>> round(easy_split_bound(200_000, 10, vc_dimension=3), 4)
    0.0444

    References
    ----------
    li2024optimistic, Corollary 1
    """
    require(n_bags >= 2, f"Sample splitting needs at least 2 bags, got {n_bags}.")
    return easy_optimistic_bound(
        n_bags // 2,
        bag_size,
        vc_dimension=vc_dimension,
        best_error=best_error,
        confidence=confidence,
        constant=constant,
    )


def easy_slow_bound(
    n_bags: int,
    bag_size: int,
    *,
    vc_dimension: int,
    confidence: float = 0.95,
    constant: float = 1.0,
) -> float:
    r"""Excess error of EasyLLP at the slow rate, better in k than the optimistic one.

    .. math:: C \sqrt{\frac{d \log(kn) + k \log(1/\delta)}{n}}

    Examples
    --------
    >>> round(easy_slow_bound(100_000, 10, vc_dimension=3), 4)
    0.0267

    References
    ----------
    busafekete2023easy, Theorem 5.2; li2024optimistic, equation (12)
    """
    check_sample(n_bags, vc_dimension, confidence)
    complexity = vc_dimension * math.log(bag_size * n_bags + 1)
    return constant * math.sqrt((complexity - bag_size * math.log(1 - confidence)) / n_bags)


def marginal_bias(mean_prediction: float, prior: float, *, bag_size: int) -> float:
    r"""Bias of k times the proportional square loss as an estimate of the error.

    .. math:: B(f) = (k - 1) (\mathbb{E} f - p)^2

    Examples
    --------
    >>> round(marginal_bias(1 / 3, 2 / 3, bag_size=7), 4)
    0.6667
    """
    require_whole("bag_size", bag_size)
    require_probability("mean_prediction", mean_prediction, closed=True)
    require_probability("prior", prior, closed=True)
    return (bag_size - 1) * (mean_prediction - prior) ** 2


def proportion_square_bound(
    n_bags: int,
    bag_size: int,
    *,
    vc_dimension: int,
    best_error: float,
    bias: float,
    confidence: float = 0.95,
    constant: float = 1.0,
) -> float:
    r"""Error (not excess) of the proportional square loss, against one comparator f.

    .. math:: L(f) + B(f) + C \left( \frac{k d' + k^2 \log(1/\delta)}{n}
              + \sqrt{\frac{(L(f) + B(f)) \, k (d' + \log(1/\delta))}{n}} \right),
              \quad d' = d \log(kn)

    Parameters
    ----------
    best_error, bias : float
        The comparator's error L(f) and its bias B(f) of :func:`marginal_bias`. The bound does not
        vanish with n unless some f makes both small.

    Examples
    --------
    >>> round(proportion_square_bound(10**9, 7, vc_dimension=1, best_error=1 / 3, bias=2 / 3), 2)
    1.0

    References
    ----------
    li2024optimistic, equation (9)
    """
    check_sample(n_bags, vc_dimension, confidence)
    require(bias >= 0, f"`bias` is a square and cannot be negative, got {bias!r}.")
    centre = best_error + bias
    fast = vc_dimension * math.log(bag_size * n_bags + 1)
    tail = -math.log(1 - confidence)
    rate = bag_size * (fast + bag_size * tail) / n_bags
    return centre + constant * (rate + math.sqrt(centre * bag_size * (fast + tail) / n_bags))
