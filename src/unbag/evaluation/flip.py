"""Guard against a model that learned the inverse: detect it from the bags, and put it right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from unbag.bags import Bags
from unbag.evaluation.risk import checked_scores

__all__ = ["FlipCheck", "check_flip", "repair_flip"]

Array = NDArray[Any]


@dataclass(frozen=True)
class FlipCheck:
    """Whether scores stand for the labels they claim to stand for.

    Attributes
    ----------
    flipped : bool
        Whether another assignment fits the bags better.
    order : tuple of int
        Which output belongs to each class; for a binary task ``(0,)``, or ``(-1,)`` if inverted;
        for a multilabel one, ``-1 - label`` marks an inverted label.
    p_value : float
        Chance of so clear a preference for `order` over its rival if the scores told nothing. A
        large value means that the bags cannot tell.
    covariances : array of shape (n_outputs, n_outputs)
        Estimated covariance of each label (row) with each score (column).

    Examples
    --------
    >>> print(FlipCheck(True, (-1,), 0.001, np.array([[-0.2]])))
    The scores are inverted (p = 0.001).
    """

    flipped: bool
    order: tuple[int, ...]
    p_value: float
    covariances: Array

    def __str__(self) -> str:
        what = "inverted" if self.flipped else "the right way round"
        if len(self.order) > 1 and self.flipped:
            what = f"in another order: {self.order}"
        return f"The scores are {what} (p = {self.p_value:.2g})."


def check_flip(scores: Any, bags: Bags) -> FlipCheck:
    r"""Find out from bags whether a model learned the inverse, or its classes in another order.

    For bags near one half the mean score alone does not tell a classifier from its inverse; the
    covariance of labels and scores does, :math:`\mathrm{Cov}(y, f) = k \, \mathrm{Cov}(a_i, f_i)`.
    Several classes are assigned to outputs by the greatest sum of covariances.

    Parameters
    ----------
    scores : array of shape (n_instances,) or (n_instances, n_outputs)
        Probabilities, in the order of ``bags.X``.
    bags : Bags

    Examples
    --------
    >>> bags = Bags.from_arrays(np.zeros((8, 1)), offsets=[0, 2, 4, 6, 8], counts=[0, 1, 2, 1])
    >>> check_flip(np.array([1, 1, 0, 1, 0, 0, 1, 0]), bags).flipped
    True
    """
    values = checked_scores(scores, bags)
    parts = _covariance_parts(values, bags)
    covariances = parts.mean(axis=0)
    order = _best_order(covariances, bags.task)
    rival = _rival(order, covariances, bags.task)
    contrast = _fit(parts, order, bags.task) - _fit(parts, rival, bags.task)
    straight = tuple(range(len(order)))
    return FlipCheck(order != straight, order, _p_value(contrast), covariances)


def repair_flip(scores: Any, bags: Bags, *, level: float = 0.05) -> Array:
    """Scores the right way round: turned over where the bags say so at this level.

    Parameters
    ----------
    scores : array of shape (n_instances,) or (n_instances, n_outputs)
        Probabilities, in the order of ``bags.X``.
    bags : Bags
        Bags the scores were not fitted on.
    level : float
        Chance of turning scores that are the right way round.

    Examples
    --------
    >>> bags = Bags.from_arrays(np.zeros((8, 1)), offsets=[0, 2, 4, 6, 8], counts=[0, 1, 2, 1])
    >>> scores = np.array([0.9, 0.9, 0.1, 0.9, 0.1, 0.1, 0.9, 0.1])
    >>> repair_flip(scores, bags, level=0.2)[:2]
    array([0.1, 0.1])
    """
    found = check_flip(scores, bags)
    values = np.array(scores, dtype=float)
    if not found.flipped or found.p_value > level:
        return values
    if bags.task == "multiclass":
        return values[:, list(found.order)]
    turned = np.array([number < 0 for number in found.order])
    return 1 - values if bags.task == "binary" else np.where(turned, 1 - values, values)


def _covariance_parts(values: Array, bags: Bags) -> Array:
    """Each bag's share in the covariances, of shape (n_bags, n_outputs, n_outputs)."""
    sizes = bags.sizes.astype(float)
    shares = sizes / sizes.sum()
    targets = bags.proportions.reshape(bags.n_bags, -1)
    means = bags.mean(values)
    scale = sizes * bags.n_bags / (bags.n_bags - 1)
    a, f = targets - shares @ targets, means - shares @ means
    return scale[:, None, None] * a[:, :, None] * f[:, None, :]


def _best_order(covariances: Array, task: str) -> tuple[int, ...]:
    if task == "multiclass":
        return tuple(int(i) for i in optimize.linear_sum_assignment(-covariances)[1])
    return tuple(
        label if covariances[label, label] >= 0 else -1 - label for label in range(len(covariances))
    )


def _rival(order: tuple[int, ...], covariances: Array, task: str) -> tuple[int, ...]:
    """The order to be told from `order`: the given one or, if that is best, the next best."""
    straight = tuple(range(len(order)))
    if order != straight:
        return straight
    if task != "multiclass":
        weakest = int(np.argmin(np.diag(covariances)))
        return tuple(-1 - i if i == weakest else i for i in order)
    pairs = [(i, j) for i in range(len(order)) for j in range(i)]
    swaps = [tuple({i: j, j: i}.get(n, n) for n in straight) for i, j in pairs]
    return max(swaps, key=lambda o: sum(covariances[n, o[n]] for n in straight))


def _fit(parts: Array, order: tuple[int, ...], task: str) -> Array:
    """Each bag's support for an order."""
    if task == "multiclass":
        return parts[:, np.arange(len(order)), list(order)].sum(axis=1)
    signs = np.array([-1 if number < 0 else 1 for number in order])
    return (np.diagonal(parts, axis1=1, axis2=2) * signs).sum(axis=1)


def _p_value(contrast: Array) -> float:
    error = contrast.std(ddof=1) / np.sqrt(len(contrast))
    if error == 0:
        return 1.0
    return float(stats.t.sf(contrast.mean() / error, len(contrast) - 1))
