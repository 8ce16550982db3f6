"""Variance of each estimate of the 0-1 error, computed before any data is seen."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from unbag.planning.conditions import require, require_probability, require_whole

__all__ = [
    "easy_deviation_realizable",
    "labelled_relative_error",
    "pairwise_relative_error",
    "pure_bag_probability",
]


def pairwise_relative_error(error: float, n_bags: int, *, bag_size: int) -> float:
    r"""Standard error of the pairwise estimate over the error itself, for E f = p.

    .. math:: \frac{\mathrm{sd}(\hat R)}{R} = \sqrt{\frac{1 - R}{n k R}
              + \frac{2c}{n} \Bigl(1 + \frac{c}{n - 1}\Bigr)} \approx \sqrt{2/n},
              \qquad c = 1 - \frac1k

    Notes
    -----
    The first term is that of nk labels, the second the price of not seeing them: the wrong
    instances of a bag add up to a sum of k signs with variance kR and fourth cumulant kR(1 - 3R),
    and products of distinct bags are uncorrelated with squares. So the rule of thumb ``sqrt(2/n)``
    is right for bags with a few wrong instances, kR above 1 or so; with less than one it is
    ``sqrt(1 / (n k R))``, as if the labels were known.

    Examples
    --------
    >>> round(pairwise_relative_error(0.02, 600, bag_size=100), 4)
    0.0642
    >>> round((2 / 600) ** 0.5, 4)
    0.0577
    """
    require(0 < error <= 1, f"`error` must lie in (0, 1], got {error!r}.")
    require_whole("n_bags", n_bags, least=2)
    require_whole("bag_size", bag_size)
    hidden = 1 - 1 / bag_size
    labelled = (1 - error) / (n_bags * bag_size * error)
    return math.sqrt(labelled + 2 * hidden / n_bags * (1 + hidden / (n_bags - 1)))


def labelled_relative_error(error: float, n_labels: int) -> float:
    r"""Standard error of a labelled test set over the error itself, :math:`\sqrt{(1-R)/(mR)}`.

    Examples
    --------
    >>> round(labelled_relative_error(0.02, 12_000), 4)
    0.0639
    """
    require_probability("error", error)
    require_whole("n_labels", n_labels)
    return math.sqrt((1 - error) / (n_labels * error))


def easy_deviation_realizable(n_bags: int, *, bag_size: int, prior: float) -> float:
    r"""Standard deviation of EasyLLP's estimate of the true hypothesis, whose error is 0.

    .. math:: \frac{1}{\sqrt n} \, \mathrm{sd}\bigl[(k(a-p)+p)(1-a) + (k(p-a)+1-p)\,a\bigr],
              \quad k a \sim \mathrm{Bin}(k, p)

    Notes
    -----
    It is ``1 / (2 sqrt(n))`` for bags of two and prior 1/2, and tends to ``1 / sqrt(2n)`` there for
    large bags; for any other prior it grows like ``abs(1 - 2p) sqrt(k p (1 - p) / n)``.

    Examples
    --------
    >>> round(easy_deviation_realizable(100, bag_size=2, prior=0.5), 12)
    0.05

    References
    ----------
    li2024optimistic, Proposition 2
    """
    require_whole("n_bags", n_bags)
    require_probability("prior", prior)
    count = np.arange(bag_size + 1)
    share = count / bag_size
    pull = bag_size * (share - prior) + prior
    loss = pull * (1 - share) + (1 - pull) * share
    weights = binom.pmf(count, bag_size, prior)
    return float(np.sqrt(weights @ (loss - weights @ loss) ** 2 / n_bags))


def pure_bag_probability(margin: float, bag_size: int) -> float:
    r"""Probability that a bag of the one-point problem is pure, the only bag EPRM can use.

    .. math:: (1/2 + \varepsilon)^k + (1/2 - \varepsilon)^k

    Examples
    --------
    >>> pure_bag_probability(0.0, 10) == 2**-9
    True
    """
    require(0 <= margin <= 0.5, f"`margin` must lie in [0, 1/2], got {margin!r}.")
    require_whole("bag_size", bag_size)
    return (0.5 + margin) ** bag_size + (0.5 - margin) ** bag_size
