"""The 0-1 losses of bags, written in counts.

On hard predictions a rule sees a bag only through three numbers: its size k, its positive count,
and the number of instances predicted 1. A rule is a few terms per bag, their sums over bags, and a
formula on the sums; that is what lets a sweep update it in constant time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from unbag.errors import ConditionError

__all__ = [
    "EPRM",
    "CountDebiasedSquare",
    "CountProportionLog",
    "CountProportionSquare",
    "CountRule",
    "EasyLLP",
    "bag_loss",
]

Array = NDArray[Any]
Terms = tuple[Array, ...]


class CountRule(Protocol):
    """What a rule on counts provides. Every array may have leading axes; bags are the last one."""

    def per_bag(self, sizes: Array, positives: Array) -> Terms:
        """What the rule must know of each bag, predictions apart."""
        ...

    def terms(self, counts: Array, *known: Array) -> Terms:
        """Terms of bags with these predicted counts, `known` being parts of `per_bag`."""
        ...

    def combine(self, sums: Terms, sizes: Array) -> Array:
        """Value of the rule from the sums of its terms over the bags."""
        ...


def bag_loss(rule: CountRule, counts: Array, *, sizes: Array, positives: Array) -> Array:
    """Value of a rule for predicted counts of shape (..., bags).

    Examples
    --------
    >>> counts, sizes, positives = np.array([1, 0]), np.array([2, 2]), np.array([1, 1])
    >>> float(bag_loss(EPRM(), counts, sizes=sizes, positives=positives))
    0.5
    >>> float(bag_loss(CountDebiasedSquare(), counts, sizes=sizes, positives=positives))
    0.25
    """
    known = rule.per_bag(sizes, positives)
    sums = tuple(term.sum(axis=-1) for term in rule.terms(counts, *known))
    return rule.combine(sums, sizes)


@dataclass(frozen=True)
class EPRM:
    r"""Share of bags whose count is missed, :math:`\frac1n \sum_i 1\{r_i \ne 0\}`.

    References
    ----------
    yu2014learning; li2024optimistic, equation (2)
    """

    def per_bag(self, sizes: Array, positives: Array) -> Terms:
        """Positive counts."""
        return (positives,)

    def terms(self, counts: Array, *known: Array) -> Terms:
        """1 for a missed bag."""
        [positives] = known
        return (np.not_equal(counts, positives).astype(float),)

    def combine(self, sums: Terms, sizes: Array) -> Array:
        """Mean over bags."""
        return sums[0] / len(sizes)


@dataclass(frozen=True)
class CountProportionSquare:
    r"""Mean squared residual, :math:`\frac1n \sum_i r_i^2`.

    References
    ----------
    li2024optimistic, equation (6)
    """

    def per_bag(self, sizes: Array, positives: Array) -> Terms:
        """Sizes and positive counts."""
        return sizes, positives

    def terms(self, counts: Array, *known: Array) -> Terms:
        """Squared residual."""
        sizes, positives = known
        return (((counts - positives) / sizes) ** 2,)

    def combine(self, sums: Terms, sizes: Array) -> Array:
        """Mean over bags."""
        return sums[0] / len(sizes)


@dataclass(frozen=True)
class CountProportionLog:
    r"""Mean cross entropy of proportion and mean prediction; infinite when a bag forbids it.

    .. math:: -\frac1n \sum_i a_i \log \bar f_i + (1 - a_i) \log (1 - \bar f_i), \quad 0 \log 0 = 0

    References
    ----------
    li2024optimistic, equation (7) and Appendix A
    """

    def per_bag(self, sizes: Array, positives: Array) -> Terms:
        """Sizes and positive counts."""
        return sizes, positives

    def terms(self, counts: Array, *known: Array) -> Terms:
        """Whether the loss is infinite, and its finite part: infinities do not subtract."""
        sizes, positives = known
        mean, share = counts / sizes, positives / sizes
        loss = -xlogy(share, mean) - xlogy(1 - share, 1 - mean)
        infinite = np.isinf(loss)
        return infinite.astype(float), np.where(infinite, 0.0, loss)

    def combine(self, sums: Terms, sizes: Array) -> Array:
        """Mean over bags."""
        return np.where(sums[0] > 0.5, np.inf, sums[1] / len(sizes))


@dataclass(frozen=True)
class CountDebiasedSquare:
    r"""Square loss with the bias of averaging removed; an estimate of the 0-1 error.

    With :math:`N = \sum k_i` and :math:`\bar r = \sum k_i r_i / N`,

    .. math::
        \text{pairwise:}\quad & \bar r^2
            + (1 - \tfrac1N) \tfrac{1}{n-1} \textstyle\sum_i k_i (r_i - \bar r)^2 \\
        \text{batch:}\quad & \bar r^2 + \tfrac1n \textstyle\sum_i k_i (r_i - \bar r)^2

    Parameters
    ----------
    debias : {"pairwise", "batch"}
        "pairwise" is exactly unbiased; "batch" is the paper's formula, which for equal bags reads
        ``k * mean(r**2) - (k - 1) * mean(r)**2``.

    References
    ----------
    li2024optimistic, Section 3
    """

    debias: str = "pairwise"

    def __post_init__(self) -> None:
        if self.debias not in ("pairwise", "batch"):
            raise ConditionError(f"`debias` must be 'pairwise' or 'batch', got {self.debias!r}.")

    def per_bag(self, sizes: Array, positives: Array) -> Terms:
        """Sizes and positive counts."""
        return sizes, positives

    def terms(self, counts: Array, *known: Array) -> Terms:
        """``k r`` and ``k r**2``."""
        sizes, positives = known
        gap = np.asarray(counts - positives, dtype=float)
        return gap, gap**2 / sizes

    def weights(self, sizes: Array) -> tuple[float, float]:
        """Coefficients of ``(sum k r)**2`` and of ``sum k r**2``."""
        n_bags, total = len(sizes), float(np.sum(sizes))
        if self.debias == "batch":
            spread = 1 / n_bags
        elif n_bags < 2:
            raise ConditionError("The pairwise debiased loss needs at least 2 bags, got 1.")
        else:
            spread = (1 - 1 / total) / (n_bags - 1)
        return 1 / total**2 - spread / total, spread

    def combine(self, sums: Terms, sizes: Array) -> Array:
        """The formula above, written in the two sums."""
        centre, spread = self.weights(sizes)
        return centre * sums[0] ** 2 + spread * sums[1]


@dataclass(frozen=True)
class EasyLLP:
    r"""Unbiased, possibly negative estimate of the 0-1 error that is linear in the predictions.

    .. math:: \frac1n \sum_i w_i (1 - \bar f_i) + (1 - w_i) \bar f_i, \qquad
              w_i = k_i (a_i - p) + p

    Parameters
    ----------
    prior : float, "estimated" or "split"
        p itself; or the mean label of all bags; or the mean label of the first half of the bags,
        the loss then running over the second half. The order of the bags must carry no meaning.

    References
    ----------
    busafekete2023easy; li2024optimistic, Section 4 and Corollary 1
    """

    prior: float | str = "estimated"

    def __post_init__(self) -> None:
        named = self.prior in ("estimated", "split")
        if not named and not (isinstance(self.prior, int | float) and 0 <= self.prior <= 1):
            raise ConditionError(
                f"`prior` must lie in [0, 1] or be 'estimated' or 'split', got {self.prior!r}."
            )

    def per_bag(self, sizes: Array, positives: Array) -> Terms:
        """Sizes, weights w, and which bags count."""
        half = self._half(len(sizes))
        counting = np.arange(len(sizes)) >= half
        if isinstance(self.prior, str):
            voters = ~counting if half else counting
            seen = positives[..., voters].sum(axis=-1, keepdims=True)
            prior: Array | float = seen / np.sum(np.asarray(sizes)[voters])
        else:
            prior = float(self.prior)
        return sizes, positives - (sizes - 1) * prior, counting.astype(float)

    def terms(self, counts: Array, *known: Array) -> Terms:
        """The loss of a bag, 0 where the bag only votes on the prior."""
        sizes, weights, counting = known
        mean = counts / sizes
        return (counting * (weights * (1 - mean) + (1 - weights) * mean),)

    def combine(self, sums: Terms, sizes: Array) -> Array:
        """Mean over the bags that count."""
        return sums[0] / (len(sizes) - self._half(len(sizes)))

    def _half(self, n_bags: int) -> int:
        if self.prior != "split":
            return 0
        if n_bags < 2:
            raise ConditionError("Sample splitting needs at least 2 bags, got 1.")
        return n_bags // 2
