"""The paper's upper bounds as shapes: conditions checked, hidden constants as parameters.

A shape says how a bound moves with its arguments. It is not a certificate: `constant` stands for a
number the paper does not give, and logarithms hidden in its O-tilde are written out as
``log(k n)`` where the proofs have them. Certificates are in :mod:`unbag.planning.realizable`
and :mod:`unbag.planning.certificates`.
"""

from __future__ import annotations

import math

from unbag.planning.conditions import require, require_probability, require_whole, warn_unless
from unbag.planning.mismatch import mismatch_bound
from unbag.planning.realizable import log_growth_function

__all__ = [
    "bag_class_vc_bound",
    "debiased_excess_bound",
    "easy_optimistic_bound",
    "easy_slow_bound",
    "easy_split_bound",
    "eprm_sample_size",
    "eprm_sample_size_sharp",
    "marginal_bias",
    "proportion_square_bound",
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
    Warns with :class:`~unbag.errors.ConditionWarning` outside k >= 11, eps < 1/(4k) and symmetry.
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
    1/k, and the argument in :func:`~unbag.planning.mismatch.mismatch_bound` removes its conditions.

    Examples
    --------
    >>> round(eprm_sample_size_sharp(0.01, 20, vc_dimension=3))
    115
    """
    _check_target(error, vc_dimension, confidence)
    missed = float(mismatch_bound(error, bag_size))
    complexity = vc_dimension * math.log(max(bag_size, 2)) * math.log(1 / missed)
    return constant * (complexity - math.log(1 - confidence)) / missed


def debiased_excess_bound(
    n_bags: int,
    bag_size: int,
    *,
    vc_dimension: int,
    best_error: float = 0.0,
    confidence: float = 0.95,
    constant: float = 1.0,
) -> float:
    r"""Excess error of the debiased square loss: fast at L* = 0, slow elsewhere.

    .. math:: C \left( \frac{k^2 (d \log(kn) + \log(1/\delta))}{n}
              + \sqrt{\frac{L^* k^2 (d \log(kn) + \log(1/\delta))}{n}} \right)

    Examples
    --------
    >>> round(debiased_excess_bound(100_000, 10, vc_dimension=3), 4)
    0.0444

    References
    ----------
    li2024optimistic, Theorem 2
    """
    _check_sample(n_bags, vc_dimension, confidence)
    require_probability("best_error", best_error, closed=True)
    rate = bag_size**2 * _complexity(n_bags, bag_size, vc_dimension, confidence) / n_bags
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
    """Excess error of EasyLLP with a known prior: the shape of :func:`debiased_excess_bound`.

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
    _check_sample(n_bags, vc_dimension, confidence)
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
    _check_sample(n_bags, vc_dimension, confidence)
    require(bias >= 0, f"`bias` is a square and cannot be negative, got {bias!r}.")
    centre = best_error + bias
    fast = vc_dimension * math.log(bag_size * n_bags + 1)
    tail = -math.log(1 - confidence)
    rate = bag_size * (fast + bag_size * tail) / n_bags
    return centre + constant * (rate + math.sqrt(centre * bag_size * (fast + tail) / n_bags))


def _complexity(n_bags: int, bag_size: int, vc_dimension: int, confidence: float) -> float:
    return vc_dimension * math.log(bag_size * n_bags + 1) - math.log(1 - confidence)


def _check_sample(n_bags: int, vc_dimension: int, confidence: float) -> None:
    require_whole("n_bags", n_bags)
    require_whole("vc_dimension", vc_dimension)
    require_probability("confidence", confidence)


def _check_target(error: float, vc_dimension: int, confidence: float) -> None:
    require(0 < error < 0.5, f"`error` must lie in (0, 1/2), got {error!r}.")
    require_whole("vc_dimension", vc_dimension)
    require_probability("confidence", confidence)
