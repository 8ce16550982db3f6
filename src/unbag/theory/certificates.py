"""Agnostic guarantees with every constant written out, for equal bags of i.i.d. instances.

The paper's theorems hide constants; these do not. Two facts carry them:

* the pairwise debiased square loss is a U-statistic whose kernel lies in [0, 2k - 1], so its
  variance is at most (2k - 1) times its mean;
* the offset EasyLLP loss of two hypotheses lies in [-W, W], W = 1 + 2 (k - 1) max(p, 1 - p).

Those for a class that contains the truth are in :mod:`unbag.theory.realizable`.
"""

from __future__ import annotations

import math

from unbag.theory.conditions import require, require_probability, require_whole
from unbag.theory.realizable import log_budget

__all__ = [
    "debiased_excess_certificate",
    "debiased_risk_certificate",
    "easy_excess_certificate",
    "easy_offset_range",
    "pairwise_kernel_range",
]


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
    step = _pairwise_budget(n_bags, bag_size, log_budget(n_hypotheses, confidence)) / 2
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
    budget = log_budget(n_hypotheses + 1, confidence)
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
    rate = log_budget(n_hypotheses, confidence) / n_bags
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
