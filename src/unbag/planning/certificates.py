"""Agnostic guarantees with explicit constants, for equal bags of i.i.d. instances.

The paper's theorems hide constants. These follow from one fact: the pairwise debiased square loss
is a U-statistic whose kernel lies in [0, 2k - 1] and whose variance is of order R^2 + R/k, not k R.
:mod:`unbag.planning.realizable` treats classes that contain the truth.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from unbag.planning.conditions import require_probability, require_whole
from unbag.planning.realizable import log_budget


def pairwise_kernel_range(bag_size: int) -> float:
    r"""Largest value of the pairwise debiased kernel; its smallest is 0.

    .. math:: h(r, r') = \tfrac{k}{2} (r^2 + r'^2) - (k-1) r r' \in [0, 2k - 1],
              \qquad r, r' \in [-1, 1]
    """
    require_whole("bag_size", bag_size)
    return 2.0 * bag_size - 1.0


def pairwise_kernel_deviation(error: float, bag_size: int) -> float:
    r"""Bound on the standard deviation of the pairwise kernel of a hypothesis of this error (D32).

    .. math:: w(R) = \min\left( \sqrt{\tfrac{2R}{k} + 2R^2} + R \sqrt{\tfrac2k} + \tfrac{R}{k},\;
              \sqrt{(2k-1) R} \right)
    """
    require_whole("bag_size", bag_size)
    require_probability("error", error, closed=True)
    main = math.sqrt(2 * error / bag_size + 2 * error**2)
    rest = error * (math.sqrt(2 / bag_size) + 1 / bag_size)
    return min(main + rest, math.sqrt(pairwise_kernel_range(bag_size) * error))


def debiased_risk_certificate(
    estimate: float, n_bags: int, *, bag_size: int, n_hypotheses: int = 1, confidence: float = 0.95
) -> float:
    r"""Upper limit of the 0-1 error of hypotheses whose pairwise estimate is at most `estimate`.

    With :math:`u = \ln(|F|/\delta)`, :math:`N = \lfloor n/2 \rfloor` and w of
    :func:`pairwise_kernel_deviation`, the largest R with

    .. math:: R - w(R) \sqrt{2u/N} - R u / 3N \le \hat R.

    Notes
    -----
    Bernstein's lower tail of an average of N independent kernels, none of which is below 0; it
    holds for the U-statistic too, because that is a mean of such averages. It holds for all
    hypotheses of the class at once. The interval of `unbag.evaluate` is tighter and approximate.

    Examples
    --------
    >>> round(debiased_risk_certificate(0.02, 20_000, bag_size=10), 4)
    0.0221
    """
    rate = _pair_rate(n_bags, log_budget(n_hypotheses, confidence))
    return _largest_error(max(estimate, 0.0), rate, bag_size)


def debiased_excess_certificate(
    n_bags: int,
    bag_size: int,
    *,
    n_hypotheses: int,
    best_error: float = 0.0,
    confidence: float = 0.95,
) -> float:
    r"""Excess error of the minimiser of the pairwise debiased square loss over a finite class.

    With :math:`u = \ln((|F|+1)/\delta)`, :math:`N = \lfloor n/2 \rfloor`, :math:`M = 2k-1` and w of
    :func:`pairwise_kernel_deviation`:

    .. math::
        \text{Hoeffding:}\quad & 2 M \sqrt{u / 2N} \\
        \text{Bernstein:}\quad & R - w(R) \sqrt{2u/N} - R u/3N
            \le L^* + w(L^*) \sqrt{2u/N} + M u / 3N

    the second solved for :math:`R` and :math:`L^*` subtracted. The smaller of the two is taken,
    which is valid since both are known in advance.

    Parameters
    ----------
    best_error : float
        Error L* of the best hypothesis of the class; Bernstein's bound is fast when it is small.

    Notes
    -----
    Of order :math:`\sqrt{(L^{*2} + L^*/k) u / n} + k u / n`.

    Examples
    --------
    >>> round(debiased_excess_certificate(20_000, 10, n_hypotheses=100), 4)
    0.0064

    References
    ----------
    hoeffding1963probability, Section 5b; boucheron2013concentration, Theorem 2.10
    """
    require_probability("best_error", best_error, closed=True)
    rate = _pair_rate(n_bags, log_budget(n_hypotheses + 1, confidence))
    scale = pairwise_kernel_range(bag_size)
    above = pairwise_kernel_deviation(best_error, bag_size) * math.sqrt(2 * rate) + scale * rate / 3
    bernstein = _largest_error(best_error + above, rate, bag_size) - best_error
    return min(1.0 - best_error, bernstein, scale * math.sqrt(2 * rate))


def _pair_rate(n_bags: int, budget: float) -> float:
    """Log budget over the number of disjoint pairs of bags."""
    require_whole("n_bags", n_bags, least=2)
    return budget / (n_bags // 2)


def _largest_error(estimate: float, rate: float, bag_size: int) -> float:
    """Largest error whose lower tail reaches down to `estimate`, or 1."""

    def lower(error: float) -> float:
        noise = pairwise_kernel_deviation(error, bag_size) * math.sqrt(2 * rate)
        return error - noise - error * rate / 3 - estimate

    if estimate >= 1 or lower(1.0) <= 0:
        return 1.0
    # Convex and positive at 1, so one crossing lies above any point at which it is at most 0, as
    # it is at 2 rate / k, since w(R) >= sqrt(R / k). Zero may be a root too, but the wrong one.
    start = max(estimate, 2 * rate / bag_size)
    return float(brentq(lower, start, 1.0, xtol=1e-15))
