"""How often a wrong hypothesis gives itself away on one bag, when the truth is in the class."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlog1py, xlogy

from unbag.planning.conditions import require, require_probability, require_whole

__all__ = ["mismatch_bound", "mismatch_inverse", "mismatch_probability"]


def mismatch_bound(error: ArrayLike, bag_size: int) -> NDArray[np.float64]:
    r"""Least probability that a hypothesis of at least this error misses a bag's proportion.

    .. math:: q(\varepsilon) = \tfrac12 - \tfrac12 (1 - 2\varepsilon)^k

    Parameters
    ----------
    error : array_like in [0, 1/2]
        A lower bound on the hypothesis's instance error.
    bag_size : int
        Number of instances k in a bag.

    Notes
    -----
    The paper derives it for errors in [eps, 1 - eps]: an odd number of wrong instances cannot
    cancel. It holds for *every* error of at least eps, which needs one more line. Let the error
    be 1 - eta with eta <= eps. Given m >= 1 wrong instances, each of sign +1 or -1, they cancel
    with probability at most 1/2 when m is even and never when m is odd. For odd k fewer than half
    of the bags have an even m. For even k they cancel with probability at most
    ``eta**k / 2 + 1/4 + (1 - 2*eta)**k / 4``, convex in eta and at most 1/2 at both ends of
    [0, 1/2]. So the bag is missed with probability at least 1/2, which is at least q. Hence the
    paper's Theorem 1 needs neither a symmetric class, nor k >= 11, nor eps < 1/(4k).

    Examples
    --------
    >>> mismatch_bound(0.01, 11).round(4)
    np.float64(0.0996)

    References
    ----------
    li2024optimistic, Theorem 1, step 2
    """
    require_whole("bag_size", bag_size)
    error = np.asarray(error, dtype=float)
    require(bool(np.all((error >= 0) & (error <= 0.5))), "`error` must lie in [0, 1/2].")
    return np.asarray(-np.expm1(bag_size * np.log1p(-2 * np.minimum(error, 0.5 - 1e-16))) / 2)[()]


def mismatch_inverse(probability: float, bag_size: int) -> float:
    r"""Error at which a bag is missed with this probability: the inverse of :func:`mismatch_bound`.

    .. math:: q^{-1}(\pi) = \tfrac12 \bigl(1 - (1 - 2\pi)^{1/k}\bigr)

    A probability of 1/2 or more says nothing about the error, and 1/2 is returned.

    Examples
    --------
    >>> round(mismatch_inverse(float(mismatch_bound(0.01, 11)), 11), 12)
    0.01
    """
    require_whole("bag_size", bag_size)
    if probability >= 0.5:
        return 0.5
    return float(-np.expm1(np.log1p(-2 * max(probability, 0.0)) / bag_size) / 2)


def mismatch_probability(error: float, bag_size: int, *, false_positives: float) -> float:
    r"""Exact probability that a hypothesis misses a bag's proportion under a realizable law.

    A wrong instance is a false positive with probability `false_positives`, else a false negative;
    the bag is matched when both kinds are equally many.

    .. math:: 1 - \sum_{m\ \mathrm{even}} \mathrm{Bin}(m; k, \varepsilon)\,
              \mathrm{Bin}(m/2; m, \rho)

    Examples
    --------
    >>> round(mismatch_probability(1.0, 2, false_positives=0.5), 12)
    0.5
    """
    require_probability("error", error, closed=True)
    require_probability("false_positives", false_positives, closed=True)
    wrong = np.arange(0, bag_size + 1, 2)
    cancel = _binomial(wrong // 2, wrong, false_positives)
    return float(1 - np.sum(_binomial(wrong, bag_size, error) * cancel))


def _binomial(count: ArrayLike, number: ArrayLike, chance: float) -> NDArray[np.float64]:
    """Binomial probabilities; scipy's own overflow at chances below 1e-300."""
    count, number = np.asarray(count, dtype=float), np.asarray(number, dtype=float)
    ways = gammaln(number + 1) - gammaln(count + 1) - gammaln(number - count + 1)
    return np.exp(ways + xlogy(count, chance) + xlog1py(number - count, -chance))
