"""Guarantees with every constant written out, for equal bags of i.i.d. instances.

The paper's theorems hide constants; these do not. Three facts carry them:

* under realizability a wrong hypothesis survives one bag with probability at most 1 - q
  (:mod:`unbag.theory.mismatch`);
* the pairwise debiased square loss is a U-statistic whose kernel lies in [0, 2k - 1], so its
  variance is at most (2k - 1) times its mean;
* the offset EasyLLP loss of two hypotheses lies in [-W, W], W = 1 + 2 (k - 1) max(p, 1 - p).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp

from unbag.theory.conditions import require, require_probability, require_whole
from unbag.theory.mismatch import mismatch_bound, mismatch_inverse

__all__ = [
    "debiased_excess_certificate",
    "debiased_risk_certificate",
    "easy_excess_certificate",
    "easy_offset_range",
    "log_growth_function",
    "pairwise_kernel_range",
    "realizable_error_certificate",
    "realizable_sample_size",
    "realizable_vc_error_certificate",
    "realizable_vc_sample_size",
    "smallest_sample_size",
]


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
    budget = _log_budget(n_hypotheses, confidence)
    return math.ceil(budget / -math.log1p(-float(mismatch_bound(error, bag_size))))


def realizable_error_certificate(
    n_bags: int, bag_size: int, *, n_hypotheses: int, confidence: float = 0.95
) -> float:
    r"""Error that no consistent hypothesis of a finite class exceeds.

    :func:`realizable_sample_size` solved for the error:

    .. math:: \varepsilon = q^{-1}\bigl(1 - (\delta/|F|)^{1/n}\bigr)

    It is 1/2, which says nothing, until n passes ``log2(|F| / delta)``.

    Examples
    --------
    >>> round(realizable_error_certificate(55, 20, n_hypotheses=1000), 4)
    0.0099
    """
    require_whole("n_bags", n_bags)
    budget = _log_budget(n_hypotheses, confidence)
    return mismatch_inverse(-math.expm1(-budget / n_bags), bag_size)


def log_growth_function(n_points: int, vc_dimension: int) -> float:
    r"""Natural log of Sauer's bound :math:`\sum_{i \le d} \binom{m}{i}` on the labelings.

    Examples
    --------
    >>> round(float(np.exp(log_growth_function(4, 1))), 6)
    5.0
    """
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
    require_whole("n_bags", n_bags)
    require_probability("confidence", confidence)
    growth = log_growth_function(2 * n_bags * bag_size, vc_dimension)
    missed = 2 / n_bags * (growth + math.log(2 / (1 - confidence))) / math.log(2)
    return mismatch_inverse(missed, bag_size)


def realizable_vc_sample_size(
    error: float, bag_size: int, *, vc_dimension: int, confidence: float = 0.95
) -> int:
    """Bags after which :func:`realizable_vc_error_certificate` is at most `error`.

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


def smallest_sample_size(
    bound: Callable[[int], float], error: float, *, largest: int = 2**60
) -> int:
    """Smallest number of bags whose falling `bound` is at most `error`, by bisection.

    Examples
    --------
    >>> smallest_sample_size(lambda n_bags: 3 / n_bags, 0.01)
    300
    """
    high = 1
    while bound(high) > error:
        high *= 2
        require(high <= largest, f"No number of bags below {largest} brings the bound to {error}.")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= error else (middle, high)
    return high


def pairwise_kernel_range(bag_size: int) -> float:
    r"""Largest value of the pairwise debiased kernel; its smallest is 0.

    .. math:: h(r, r') = \tfrac{k}{2} (r^2 + r'^2) - (k-1) r r' \in [0, 2k - 1],
              \qquad r, r' \in [-1, 1]

    Examples
    --------
    >>> pairwise_kernel_range(10)
    19.0
    """
    require_whole("bag_size", bag_size)
    return 2.0 * bag_size - 1.0


def debiased_risk_certificate(
    estimate: float, n_bags: int, *, bag_size: int, n_hypotheses: int = 1, confidence: float = 0.95
) -> float:
    r"""Upper limit of the 0-1 error of hypotheses whose pairwise estimate is at most `estimate`.

    With :math:`u = \ln(|F|/\delta)`, :math:`N = \lfloor n/2 \rfloor` and :math:`M = 2k - 1`,

    .. math:: R \le \Bigl(\sqrt{M u / 2N} + \sqrt{M u / 2N + \hat R}\Bigr)^2.

    Notes
    -----
    A lower tail of a non-negative average of N independent kernels,
    :math:`R - \hat R \le \sqrt{2 M R u / N}`, holds for the U-statistic too because it is a mean of
    such averages. Holds for all hypotheses of the class at once. A loose guarantee; the
    interval of `unbag.evaluate` is the practical one.

    Examples
    --------
    >>> round(debiased_risk_certificate(0.02, 20_000, bag_size=10), 4)
    0.0418
    """
    step = _pairwise_budget(n_bags, bag_size, _log_budget(n_hypotheses, confidence)) / 2
    return min(1.0, (math.sqrt(step) + math.sqrt(step + max(estimate, 0.0))) ** 2)


def debiased_excess_certificate(
    n_bags: int,
    bag_size: int,
    *,
    n_hypotheses: int,
    best_error: float = 0.0,
    confidence: float = 0.95,
    inequality: str = "bernstein",
) -> float:
    r"""Excess error of the minimiser of the pairwise debiased square loss over a finite class.

    With :math:`u = \ln((|F|+1)/\delta)`, :math:`N = \lfloor n/2 \rfloor`, :math:`M = 2k-1`:

    .. math::
        \text{Hoeffding:}\quad & 2 M \sqrt{u / 2N} \\
        \text{Bernstein:}\quad & R - \sqrt{2 M R u/N} \le L^* + \sqrt{2 M L^* u/N} + M u / 3N

    the second solved for :math:`R` and :math:`L^*` subtracted.

    Parameters
    ----------
    best_error : float
        Error L* of the best hypothesis of the class; Bernstein's bound is fast when it is small.
    inequality : {"bernstein", "hoeffding", "best"}
        "best" takes the smaller of the two, which is valid since both are known in advance.

    Notes
    -----
    The dependence on the bag size is k, where the paper's VC bound has k squared.

    Examples
    --------
    >>> round(debiased_excess_certificate(20_000, 10, n_hypotheses=100), 4)
    0.0379

    References
    ----------
    hoeffding1963probability, Section 5b; boucheron2013concentration, Theorem 2.10
    """
    require_probability("best_error", best_error, closed=True)
    budget = _log_budget(n_hypotheses + 1, confidence)
    step = _pairwise_budget(n_bags, bag_size, budget)
    scale = pairwise_kernel_range(bag_size)
    bounds = {
        "hoeffding": math.sqrt(2 * step * scale),
        "bernstein": _solve_root(best_error + math.sqrt(2 * step * best_error) + step / 3, 2 * step)
        - best_error,
    }
    return min(1.0 - best_error, _choose(bounds, inequality))


def easy_offset_range(bag_size: int, prior: float) -> float:
    r"""Largest absolute value of EasyLLP's loss difference of two hypotheses on one bag.

    .. math:: W = 1 + 2(k-1)\max(p, 1-p) \ge
              \bigl| (2k(\alpha - p) + 2p - 1)(\bar f^* - \bar f) \bigr|

    Notes
    -----
    The paper bounds it by k in the proof of its Lemma 1; the largest value is W <= 2k - 1, which
    changes the hidden constant only.

    Examples
    --------
    >>> easy_offset_range(10, 0.5)
    10.0
    """
    require_whole("bag_size", bag_size)
    require_probability("prior", prior, closed=True)
    return 1.0 + 2.0 * (bag_size - 1) * max(prior, 1 - prior)


def easy_excess_certificate(
    n_bags: int,
    bag_size: int,
    *,
    n_hypotheses: int,
    prior: float,
    best_error: float = 0.0,
    confidence: float = 0.95,
    inequality: str = "bernstein",
) -> float:
    r"""Excess error of the EasyLLP minimiser over a finite class, the prior being known.

    With :math:`u = \ln(|F|/\delta)` and W of :func:`easy_offset_range`,

    .. math::
        \text{Hoeffding:}\quad & 2 W \sqrt{u / 2n} \\
        \text{Bernstein:}\quad & \Gamma \le \sqrt{2 W^2 (2 L^* + \Gamma) u / n} + (W + 1) u / 3n

    the second solved for the excess :math:`\Gamma`.

    Examples
    --------
    >>> round(easy_excess_certificate(20_000, 10, n_hypotheses=100, prior=0.5), 4)
    0.0788
    """
    require_whole("n_bags", n_bags)
    require_probability("best_error", best_error, closed=True)
    width = easy_offset_range(bag_size, prior)
    rate = _log_budget(n_hypotheses, confidence) / n_bags
    offset = (width + 1) * rate / 3 + 2 * best_error
    bounds = {
        "hoeffding": 2 * width * math.sqrt(rate / 2),
        "bernstein": _solve_root(offset, 2 * width**2 * rate) - 2 * best_error,
    }
    return min(1.0 - best_error, _choose(bounds, inequality))


def _solve_root(offset: float, slope: float) -> float:
    """Largest x with ``x <= offset + sqrt(slope * x)``."""
    return (math.sqrt(slope / 4) + math.sqrt(slope / 4 + offset)) ** 2


def _choose(bounds: dict[str, float], inequality: str) -> float:
    known = [*bounds, "best"]
    require(inequality in known, f"`inequality` must be one of {known}, got {inequality!r}.")
    return min(bounds.values()) if inequality == "best" else bounds[inequality]


def _pairwise_budget(n_bags: int, bag_size: int, budget: float) -> float:
    require_whole("n_bags", n_bags, least=2)
    return pairwise_kernel_range(bag_size) * budget / (n_bags // 2)


def _log_budget(n_hypotheses: int, confidence: float) -> float:
    require_whole("n_hypotheses", n_hypotheses)
    require_probability("confidence", confidence)
    return math.log(n_hypotheses / (1 - confidence))
