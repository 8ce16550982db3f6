"""How many bags the realizable theorems ask for, and how often a wrong hypothesis shows.

Shapes and certificates: `constant` stands for a number that the paper does not give.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlog1py, xlogy

from unbag.planning.conditions import require, require_probability, require_whole
from unbag.planning.realizable import (
    log_budget,
    log_growth_function,
    mismatch_bound,
    realizable_vc_error_certificate,
    smallest_sample_size,
)
from unbag_paper.theory.conditions import warn_unless

__all__ = [
    "bag_class_vc_bound",
    "eprm_sample_size",
    "eprm_sample_size_sharp",
    "mismatch_probability",
    "realizable_sample_size",
    "realizable_vc_sample_size",
]


def bag_class_vc_bound(vc_dimension: int, bag_size: int) -> int:
    r"""Upper bound on the VC dimension of the bag class of EPRM, of order d log k.

    The bag class holds the maps from a bag and its proportion to "the count is missed". Its VC
    dimension is at most the largest m with

    .. math:: 2^m \le \sum_{i \le d} \binom{mk}{i}.

    Examples
    --------
    >>> bag_class_vc_bound(1, 1)
    1
    >>> [bag_class_vc_bound(3, bag_size) for bag_size in (1, 10, 100, 1000)]
    [3, 20, 32, 43]

    References
    ----------
    li2024optimistic, Theorem 1, step 1
    """
    require_whole("vc_dimension", vc_dimension)
    require_whole("bag_size", bag_size)
    largest = vc_dimension
    while log_growth_function((largest + 1) * bag_size, vc_dimension) >= (largest + 1) * math.log(
        2
    ):
        largest += 1
    return largest


def eprm_sample_size(
    error: float,
    bag_size: int,
    *,
    vc_dimension: int,
    confidence: float = 0.95,
    symmetric: bool = True,
    constant: float = 1.0,
) -> float:
    r"""Bags for EPRM under realizability, in the shape of the paper's Theorem 1.

    .. math:: n = C \, \frac{d \log k \, \log(1/\varepsilon) + \log(1/\delta)}{\varepsilon}

    Parameters
    ----------
    symmetric : bool
        Whether f in the class implies 1 - f in the class, as the theorem assumes.
    constant : float
        The hidden constant C.

    Notes
    -----
    Warns with `ConditionWarning` outside k >= 11, eps < 1/(4k) and symmetry.
    :func:`eprm_sample_size_sharp` needs none of the three.

    Examples
    --------
    >>> round(eprm_sample_size(0.01, 20, vc_dimension=3))
    4438

    References
    ----------
    li2024optimistic, Theorem 1
    """
    _check_target(error, vc_dimension, confidence)
    warn_unless(
        bag_size >= 11, f"EPRM's theorem is proved for k >= 11, got {bag_size}: combine bags."
    )
    warn_unless(
        error < 1 / (4 * bag_size), f"EPRM's theorem is proved for eps < 1/(4k), got {error}."
    )
    warn_unless(symmetric, "EPRM's theorem is proved for symmetric classes: add 1 - f for every f.")
    complexity = vc_dimension * math.log(max(bag_size, 2)) * math.log(1 / error)
    return constant * (complexity - math.log(1 - confidence)) / error


def eprm_sample_size_sharp(
    error: float,
    bag_size: int,
    *,
    vc_dimension: int,
    confidence: float = 0.95,
    constant: float = 1.0,
) -> float:
    r"""Bags for EPRM under realizability, with the bag's own probability of a mismatch.

    .. math:: n = C \, \frac{d \log(k) \log(1/q) + \log(1/\delta)}{q},
              \qquad q = \tfrac12 - \tfrac12(1 - 2\varepsilon)^k \approx k \varepsilon

    Notes
    -----
    Not in the paper. Its proof bounds q from below by eps; keeping q gains a factor k for eps below
    1/k, and the argument in `unbag.planning.realizable.mismatch_bound` removes its conditions.

    Examples
    --------
    >>> round(eprm_sample_size_sharp(0.01, 20, vc_dimension=3))
    115
    """
    _check_target(error, vc_dimension, confidence)
    missed = float(mismatch_bound(error, bag_size))
    complexity = vc_dimension * math.log(max(bag_size, 2)) * math.log(1 / missed)
    return constant * (complexity - math.log(1 - confidence)) / missed


def realizable_sample_size(
    error: float, bag_size: int, *, n_hypotheses: int, confidence: float = 0.95
) -> int:
    r"""Bags after which every consistent hypothesis of a finite class has at most this error.

    .. math:: n = \left\lceil \frac{\ln(|F|/\delta)}{-\ln(1 - q)} \right\rceil, \qquad
              q = \tfrac12 - \tfrac12 (1 - 2\varepsilon)^k

    Notes
    -----
    Valid for every k, every eps < 1/2 and any finite class that contains the truth. EPRM, the
    proportional square loss and the debiased square loss all return consistent hypotheses there.

    Examples
    --------
    >>> realizable_sample_size(0.01, 20, n_hypotheses=1000)
    55
    >>> realizable_sample_size(0.01, 1, n_hypotheses=1000)
    986
    """
    require(0 < error < 0.5, f"`error` must lie in (0, 1/2), got {error!r}.")
    budget = log_budget(n_hypotheses, confidence)
    return math.ceil(budget / -math.log1p(-float(mismatch_bound(error, bag_size))))


def realizable_vc_sample_size(
    error: float, bag_size: int, *, vc_dimension: int, confidence: float = 0.95
) -> int:
    """Bags after which :func:`~unbag.planning.realizable_vc_error_certificate` is at most `error`.

    Examples
    --------
    >>> realizable_vc_sample_size(0.01, 20, vc_dimension=3)
    555
    """
    require(0 < error < 0.5, f"`error` must lie in (0, 1/2), got {error!r}.")
    return smallest_sample_size(
        lambda n_bags: realizable_vc_error_certificate(
            n_bags, bag_size, vc_dimension=vc_dimension, confidence=confidence
        ),
        error,
    )


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


def _check_target(error: float, vc_dimension: int, confidence: float) -> None:
    require(0 < error < 0.5, f"`error` must lie in (0, 1/2), got {error!r}.")
    require_whole("vc_dimension", vc_dimension)
    require_probability("confidence", confidence)
