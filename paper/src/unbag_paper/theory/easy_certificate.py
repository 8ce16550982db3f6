"""EasyLLP's excess error over a finite class, with every constant written out.

The offset loss of two hypotheses lies in [-W, W], W = 1 + 2 (k - 1) max(p, 1 - p), and its variance
is of order L + k L^2, not k^2 L.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from unbag.planning.conditions import require_probability, require_whole
from unbag.planning.realizable import log_budget

__all__ = ["easy_excess_certificate", "easy_offset_deviation", "easy_offset_range"]


def easy_offset_range(bag_size: int, prior: float) -> float:
    r"""Largest absolute value of EasyLLP's loss difference of two hypotheses on one bag.

    .. math:: W = 1 + 2(k-1)\max(p, 1-p) \ge
              \bigl| (2k(\alpha - p) + 2p - 1)(\bar f^* - \bar f) \bigr|

    Notes
    -----
    The paper bounds it by k in the proof of its Lemma 1; the largest value is W, which approaches
    2k - 1 as the prior approaches 0 or 1. It changes the hidden constant only.

    Examples
    --------
    >>> easy_offset_range(10, 0.5)
    10.0
    """
    require_whole("bag_size", bag_size)
    require_probability("prior", prior, closed=True)
    return 1.0 + 2.0 * (bag_size - 1) * max(prior, 1 - prior)


def easy_offset_deviation(disagreement: float, bag_size: int, *, prior: float) -> float:
    r"""Bound on the root mean square of EasyLLP's loss difference of two hypotheses on one bag.

    With :math:`\nu = P(f \ne f^*)`, :math:`v = p(1-p)` and W of :func:`easy_offset_range`,

    .. math:: \min\left( \tfrac2k \sqrt{k\nu + 3k(k-1) v \nu + 4k^2\nu^2 + k^3 v \nu^2}
              + \tfrac{|2p-1|}{k} \sqrt{k\nu + k^2\nu^2},\; W \sqrt\nu \right)

    Notes
    -----
    The difference is :math:`(2T + 2p - 1) D / k` with :math:`T = \sum_j (y_j - p)` and
    :math:`D = \sum_j (f^* - f)(x_j)`; the first root bounds :math:`\mathbb{E} T^2 D^2` by expanding
    it over independent instances, the second :math:`\mathbb{E} D^2`.

    Examples
    --------
    >>> round(easy_offset_deviation(0.02, 100, prior=0.5), 4)
    0.3265
    """
    require_probability("disagreement", disagreement, closed=True)
    noise, size = prior * (1 - prior), bag_size
    pairs = size + 3 * size * (size - 1) * noise
    squares = 4 * size**2 + size**3 * noise
    main = 2 / size * math.sqrt(pairs * disagreement + squares * disagreement**2)
    tilt = abs(2 * prior - 1) / size * math.sqrt(size * disagreement + (size * disagreement) ** 2)
    return min(main + tilt, easy_offset_range(size, prior) * math.sqrt(disagreement))


def easy_excess_certificate(
    n_bags: int,
    bag_size: int,
    *,
    n_hypotheses: int,
    prior: float,
    best_error: float = 0.0,
    confidence: float = 0.95,
) -> float:
    r"""Excess error of the EasyLLP minimiser over a finite class, the prior being known.

    With :math:`u = \ln(|F|/\delta)`, W of :func:`easy_offset_range` and s of
    :func:`easy_offset_deviation`,

    .. math::
        \text{Hoeffding:}\quad & 2 W \sqrt{u / 2n} \\
        \text{Bernstein:}\quad & \Gamma \le s(2 L^* + \Gamma) \sqrt{2u / n} + (W + 1) u / 3n

    the second solved for the excess :math:`\Gamma`; two hypotheses disagree with probability at
    most the sum of their errors, :math:`2 L^* + \Gamma`. The smaller of the two is taken.

    Notes
    -----
    Of order :math:`\sqrt{(L^* + k L^{*2}) u / n} + k u / n`: k times the debiased loss's variance.

    Examples
    --------
    >>> round(easy_excess_certificate(20_000, 10, n_hypotheses=100, prior=0.5), 4)
    0.0048
    """
    require_whole("n_bags", n_bags)
    require_probability("best_error", best_error, closed=True)
    width = easy_offset_range(bag_size, prior)
    rate = log_budget(n_hypotheses, confidence) / n_bags

    def room(excess: float) -> float:
        apart = min(1.0, 2 * best_error + excess)
        noise = easy_offset_deviation(apart, bag_size, prior=prior) * math.sqrt(2 * rate)
        return excess - noise - (width + 1) * rate / 3

    # Convex and negative at 0: one crossing, if any.
    bernstein = float(brentq(room, 0.0, 1.0, xtol=1e-15)) if room(1.0) > 0 else 1.0
    return min(1.0 - best_error, bernstein, 2 * width * math.sqrt(rate / 2))
