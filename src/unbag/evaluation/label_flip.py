"""Detect from bags whether a model learned inverted labels, and repair it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.evaluation.bag_tests import holm
from unbag.evaluation.risk import checked_scores
from unbag.randomness import numpy_generator

N_SHUFFLES = 1999


@dataclass(frozen=True)
class FlipCheck:
    """Whether scores belong to the labels they claim.

    Attributes
    ----------
    flipped : bool
        Whether another assignment fits the bags better.
    order : tuple of int
        Output of each class; for a binary task ``(0,)``, or ``(-1,)`` if inverted; for a multilabel
        task ``-1 - label`` marks an inverted label.
    p_value : float
        If flipped, the smallest level at which `repair_flip` changes something: the probability of
        so clear a preference for another order if the given one is right or scores are
        uninformative. Otherwise the probability of so clear a preference for the given order over
        its nearest alternative if the bags have none. A large value means that the bags do not
        decide.
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
    r"""Test whether a model learned inverted labels, or its classes in another order.

    For proportions near one half the mean score does not distinguish a classifier from its inverse.
    The covariance of labels and scores does, :math:`\mathrm{Cov}(y, f) = k \, \mathrm{Cov}(a_i,
    f_i)`. Several classes are matched to outputs by the largest sum of covariances.

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
    labels, outputs = _centred(checked_scores(scores, bags), bags)
    order, p_values = _findings(labels, outputs, bags.task)
    flipped = bool((order != np.arange(len(order))).any())
    p_value = p_values.min() if flipped else _p_value_as_given(labels, outputs, bags.task)
    covariances = labels.T @ outputs / bags.n_bags
    return FlipCheck(flipped, tuple(order.tolist()), float(p_value), covariances)


def repair_flip(scores: Any, bags: Bags, *, level: float = 0.05) -> Array:
    """Invert scores, or reorder classes, if the bags reject the given order at this level.

    Parameters
    ----------
    scores : array of shape (n_instances,) or (n_instances, n_outputs)
        Probabilities, in the order of ``bags.X``.
    bags : Bags
        Bags on which the scores were not fitted.
    level : float
        Largest probability of changing any label, or any classes, that were correct.

    Notes
    -----
    Labels are tested one by one, with Holm's correction. Classes are tested in groups that trade
    places: the covariance each group gains is compared with the largest gain of any order when the
    proportions are shuffled over the bags (1999 times, with a fixed seed).

    Examples
    --------
    >>> bags = Bags.from_arrays(np.zeros((8, 1)), offsets=[0, 2, 4, 6, 8], counts=[0, 1, 2, 1])
    >>> scores = np.array([0.9, 0.9, 0.1, 0.9, 0.1, 0.1, 0.9, 0.1])
    >>> repair_flip(scores, bags, level=0.2)[:2]
    array([0.1, 0.1])
    """
    order, p_values = _findings(*_centred(checked_scores(scores, bags), bags), bags.task)
    order = np.where(p_values <= level, order, np.arange(len(order)))
    values = np.array(scores, dtype=float)
    if bags.task == "multiclass":
        return values[:, order]
    return np.where(order < 0, 1 - values, values)


def _centred(values: Array, bags: Bags) -> tuple[Array, Array]:
    """Proportions and mean scores of bags (n_bags, n_outputs), of mean zero and equal variance.

    The mean of their products is the covariance of labels and scores of single instances.
    """
    sizes = bags.sizes.astype(float)
    shares = sizes / sizes.sum()
    scale = np.sqrt(sizes * bags.n_bags / (bags.n_bags - 1))[:, None]
    targets, means = bags.proportions.reshape(bags.n_bags, -1), bags.mean(values)
    return scale * (targets - shares @ targets), scale * (means - shares @ means)


def _findings(labels: Array, outputs: Array, task: str) -> tuple[Array, Array]:
    """The best order, and for each output the p-value of its change."""
    if task == "multiclass":
        return _class_order(labels, outputs)
    products = labels * outputs
    straight = np.arange(products.shape[1])
    inverted = products.mean(axis=0) < 0
    p_values = np.where(inverted, holm(_p_values(-products)), 1.0)
    return np.where(inverted, -1 - straight, straight), p_values


def _class_order(labels: Array, outputs: Array) -> tuple[Array, Array]:
    covariances = labels.T @ outputs
    order = optimize.linear_sum_assignment(-covariances)[1]
    straight = np.arange(len(order))
    if (order == straight).all():
        return order, np.ones(len(order))
    groups = straight
    for _ in order:
        groups = np.minimum(groups, groups[order])
    gains = covariances[straight, order] - np.diag(covariances)
    gains = np.bincount(groups, gains)[groups]
    generator = numpy_generator("flip", "shuffles")
    by_chance = np.empty(N_SHUFFLES)  # what the best order gains over the given one
    for number in range(N_SHUFFLES):
        shuffled = generator.permutation(labels).T @ outputs
        best = optimize.linear_sum_assignment(-shuffled)
        by_chance[number] = shuffled[best].sum() - np.trace(shuffled)
    # A shuffle that changes nothing has to count, whatever the rounding.
    reached = (by_chance[:, None] >= gains * (1 - 1e-9)).sum(axis=0)
    return order, (1 + reached) / (1 + N_SHUFFLES)


def _p_value_as_given(labels: Array, outputs: Array, task: str) -> float:
    """P-value of the given order against the nearest alternative."""
    if task != "multiclass":
        return float(_p_values(labels * outputs).max())
    first, second = np.triu_indices(labels.shape[1], 1)
    between = (labels[:, first] - labels[:, second]) * (outputs[:, first] - outputs[:, second])
    return float(_p_values(between).max())


def _p_values(products: Array) -> Array:
    """One-sided p-value of each column's mean over bags."""
    mean = products.mean(axis=0)
    error = products.std(axis=0, ddof=1) / np.sqrt(len(products))
    # Two bags have the same product, so only rounding tells them apart.
    telling = error > 1e-9 * np.abs(mean)
    ratio = mean / np.where(telling, error, 1.0)
    return np.where(telling, stats.t.sf(ratio, len(products) - 1), 1.0)
