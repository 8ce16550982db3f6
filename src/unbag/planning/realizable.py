"""Guarantees with explicit constants for classes that contain the truth.

A wrong hypothesis survives one bag with probability at most 1 - q, see :func:`mismatch_bound`; a
union bound over hypotheses does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp

from unbag.planning.conditions import check_sample, require, require_probability, require_whole


def mismatch_bound(error: ArrayLike, bag_size: int) -> NDArray[np.float64]:
    r"""Least probability that a hypothesis of at least this error misses a bag's proportion.

    .. math:: q(\varepsilon) = \tfrac12 - \tfrac12 (1 - 2\varepsilon)^k

    An odd number of wrong instances cannot cancel. ``paper/docs/theory.md`` has the proof.
    """
    require_whole("bag_size", bag_size)
    error = np.asarray(error, dtype=float)
    require(bool(np.all((error >= 0) & (error <= 0.5))), "`error` must lie in [0, 1/2].")
    return np.asarray(-np.expm1(bag_size * np.log1p(-2 * np.minimum(error, 0.5 - 1e-16))) / 2)[()]


def mismatch_inverse(probability: float, bag_size: int) -> float:
    """Inverse of :func:`mismatch_bound`; 1/2 for probabilities of at least 1/2."""
    require_whole("bag_size", bag_size)
    if probability >= 0.5:
        return 0.5
    return float(-np.expm1(np.log1p(-2 * max(probability, 0.0)) / bag_size) / 2)


def realizable_error_certificate(
    n_bags: int, bag_size: int, *, n_hypotheses: int, confidence: float = 0.95
) -> float:
    r"""Error that no consistent hypothesis of a finite class exceeds.

    .. math:: \varepsilon = q^{-1}\bigl(1 - (\delta/|F|)^{1/n}\bigr), \qquad
              q(\varepsilon) = \tfrac12 - \tfrac12 (1 - 2\varepsilon)^k

    Valid for every k and any finite class that contains the truth. EPRM, the proportional square
    loss and the debiased square loss all return consistent hypotheses there. It is 1, which says
    nothing, until n passes ``log2(|F| / delta)``.

    Examples
    --------
    >>> round(realizable_error_certificate(55, 20, n_hypotheses=1000), 4)
    0.0099
    """
    require_whole("n_bags", n_bags)
    budget = log_budget(n_hypotheses, confidence)
    return _largest_error(-math.expm1(-budget / n_bags), bag_size)


def log_growth_function(n_points: int, vc_dimension: int) -> float:
    r"""Natural log of Sauer's bound :math:`\sum_{i \le d} \binom{m}{i}` on the labelings."""
    if n_points <= vc_dimension:
        return n_points * math.log(2)
    chosen = np.arange(vc_dimension + 1)
    terms = gammaln(n_points + 1) - gammaln(chosen + 1) - gammaln(n_points - chosen + 1)
    return float(logsumexp(terms))


def realizable_vc_error_certificate(
    n_bags: int, bag_size: int, *, vc_dimension: int, confidence: float = 0.95
) -> float:
    r"""Error that no consistent hypothesis of a VC class exceeds.

    By double sampling over the bags, a consistent hypothesis misses a fresh bag with probability at
    most

    .. math:: \pi = \tfrac{2}{n} \log_2 \frac{2\,\Gamma_F(2nk)}{\delta}, \quad n \pi \ge 8,
              \qquad \varepsilon = q^{-1}(\pi).

    Notes
    -----
    Both inequalities hold with these constants, so this is a certificate; the side condition holds
    by itself when delta is at most 0.6. The bag class of a class
    with growth function G has growth at most G(2nk) on 2n bags.

    Examples
    --------
    >>> round(realizable_vc_error_certificate(2000, 20, vc_dimension=3), 4)
    0.0027

    References
    ----------
    blumer1989learnability, Theorem A2.1; li2024optimistic, Theorem 1, step 1
    """
    check_sample(n_bags, vc_dimension, confidence)
    growth = log_growth_function(2 * n_bags * bag_size, vc_dimension)
    missed = 2 / n_bags * (growth + math.log(2 / (1 - confidence))) / math.log(2)
    return _largest_error(missed, bag_size)


def _largest_error(missed: float, bag_size: int) -> float:
    """Error of a hypothesis that misses a bag this rarely, if below 1/2, else 1."""
    error = mismatch_inverse(missed, bag_size)
    return error if error < 0.5 else 1.0


def smallest_sample_size(bound: Callable[[int], float], error: float) -> int:
    """Smallest number of bags whose decreasing `bound` is at most `error`, by bisection."""
    high, largest = 1, 2**60
    while bound(high) > error:
        high *= 2
        require(high <= largest, f"No number of bags below {largest} brings the bound to {error}.")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= error else (middle, high)
    return high


def log_budget(n_hypotheses: int, confidence: float) -> float:
    """Log of the class size over delta: the cost of a union bound."""
    require_whole("n_hypotheses", n_hypotheses)
    require_probability("confidence", confidence)
    return math.log(n_hypotheses / (1 - confidence))
