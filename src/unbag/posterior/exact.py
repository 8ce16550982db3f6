"""Label probabilities given a bag's count, exactly: the Poisson-binomial law with one left out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from unbag.posterior.tilted import tilt_to_counts

__all__ = ["enough_frequencies", "exact_classes", "exact_posterior", "second_order"]

Array = NDArray[Any]
NUMBERS_AT_ONCE = 2**15  # complex ones, half a MiB: what stays close to a core
TINY = 1e-300


def enough_frequencies(bag_size: int) -> int:
    """Frequencies that give the probability of the expected count to double precision.

    What n of them give is the probability of that count and of those n, 2n, ... away from it, which
    is at most 2 exp(-2 n^2 / bag_size), by Hoeffding's inequality; and the expected count is the
    likeliest, so its own is at least 1 / (bag_size + 1). The number is odd, so that no angle is pi,
    where a score of one half gives zero.

    Examples
    --------
    >>> [enough_frequencies(size) for size in (2, 10, 100, 1000)]
    [3, 11, 47, 149]
    """
    n_counts = bag_size + 1
    smallest = np.finfo(float).eps / n_counts
    few = math.sqrt(bag_size / 2 * math.log(2 / smallest)) + 1  # one more: the shift is rounded
    return 2 * (min(n_counts, math.ceil(few)) // 2) + 1


def exact_posterior(
    logits: Array,
    counts: Array,
    sizes: Array,
    *,
    exact_below: float = np.inf,
    tilts: Array | None = None,
) -> Array:
    r"""Probability of each label given its bag's count, for independent labels.

    .. math:: q_j = P\Big(Y_j = 1 \Big| \sum_l Y_l = n\Big)
              = p_j \, P\Big(\sum_{l \neq j} Y_l = n - 1\Big) \Big/ P\Big(\sum_l Y_l = n\Big)

    Parameters
    ----------
    logits : array of shape (n_instances,)
        Finite logits of the labels' own probabilities, bag by bag.
    counts : array of shape (n_bags,)
        Positive labels of each bag; what is no whole number is rounded.
    sizes : array of shape (n_bags,)
        Instances of each bag.
    exact_below : float
        Bags whose tilted count has at least this variance get the formula of `second_order`.
    tilts : array of shape (n_bags,), optional
        Shifts of logits to start from, such as those of similar logits; they are replaced by the
        right ones.

    Notes
    -----
    Tilting all logits of a bag by one number changes no probability given the count, and makes that
    count the likeliest. The laws with and without one label then come from a Fourier transform of
    the order of :math:`\sqrt{k}` frequencies: an instance costs :math:`O(\sqrt{k})`.

    Examples
    --------
    >>> exact_posterior(np.array([0.0, 0.0, 3.0, 1.0]), [1, 2], [2, 2])
    array([0.5, 0.5, 1. , 1. ])
    """
    sizes, counts = np.asarray(sizes), np.rint(np.asarray(counts, dtype=float))
    inside = (counts > 0) & (counts < sizes)
    found = np.repeat((counts > 0).astype(float), sizes)
    rows = np.repeat(inside, sizes)
    if not inside.any():
        return found
    kept, wanted, logits = sizes[inside], counts[inside], logits[rows]
    start = None if tilts is None else tilts[inside]
    tilt = tilt_to_counts(logits, wanted, kept, start=start)
    if tilts is not None:
        tilts[inside] = tilt
    scores = expit(logits + np.repeat(tilt, kept))
    found[rows] = np.clip(_given_tilted(scores, wanted, kept, exact_below), 0, 1)
    return found


def _given_tilted(scores: Array, counts: Array, sizes: Array, exact_below: float) -> Array:
    if exact_below == np.inf:
        return _given_counts(scores, counts, sizes)
    found, variance = second_order(scores, sizes)
    narrow = variance < exact_below
    if narrow.any():
        rows = np.repeat(narrow, sizes)
        found[rows] = _given_counts(scores[rows], counts[narrow], sizes[narrow])
    return found


def second_order(scores: Array, sizes: Array) -> tuple[Array, Array]:
    r"""Label probabilities given a count, from tilted ones, and the variance of that count.

    With tilted probabilities :math:`p_j`, :math:`v_j = p_j (1 - p_j)`, the variance :math:`V` and
    the third cumulant :math:`\kappa` of the tilted count,

    .. math:: q_j = p_j + \frac{v_j}{2 V} \Big(2 p_j - 1 + \frac{\kappa}{V}\Big) + O(V^{-2}).

    The Edgeworth expansion of the exact law: tilting alone, whose error is of the order of
    :math:`1 / V`, leaves out that a count between none and all is more certain than its labels.
    Posteriors of a bag add up to its count, as exact ones do.

    Parameters
    ----------
    scores : array of shape (n_instances,)
        Tilted so that those of a bag add up to its count, bag by bag.
    sizes : array of shape (n_bags,)

    Examples
    --------
    >>> logits = np.linspace(-1, 1, 20)
    >>> found, variance = second_order(expit(logits), np.array([20]))
    >>> bool(np.abs(found - exact_posterior(logits, [10], [20])).max() < 1e-3), variance.round(1)
    (True, array([4.6]))
    """
    starts, own = np.cumsum(sizes) - sizes, scores * (1 - scores)
    variance = np.maximum(np.add.reduceat(own, starts), TINY)
    lean = own * (2 * scores - 1)
    skew = np.add.reduceat(lean, starts) / variance
    half = 0.5 / variance
    return scores + np.repeat(half, sizes) * (lean - own * np.repeat(skew, sizes)), variance


def _given_counts(scores: Array, counts: Array, sizes: Array) -> Array:
    """Invert characteristic functions of counts with and without one label, some bags at a time."""
    n_frequencies = enough_frequencies(int(sizes.max()))
    half = n_frequencies // 2  # the others are conjugates
    turns = np.exp(2j * np.pi * np.arange(1, half + 1) / n_frequencies)
    found, ends = np.empty_like(scores), np.cumsum(sizes)
    part = (ends - 1) * half // NUMBERS_AT_ONCE
    for bags in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(part)) + 1):
        rows = slice(ends[bags[0]] - sizes[bags[0]], ends[bags[-1]])
        found[rows] = _given_counts_of(scores[rows], counts[bags], sizes[bags], turns)
    return found


def _given_counts_of(scores: Array, counts: Array, sizes: Array, turns: Array) -> Array:
    factors = 1 + scores[:, None] * (turns - 1)
    terms = np.multiply.reduceat(factors, np.cumsum(sizes) - sizes, axis=0)
    terms *= turns.conj() ** counts[:, None]
    with_label = np.repeat(terms, sizes, axis=0) * turns / factors
    mass = np.maximum(1 + 2 * terms.real.sum(axis=1), TINY)
    return scores * (1 + 2 * with_label.real.sum(axis=1)) / np.repeat(mass, sizes)


def exact_classes(scores: Array, counts: Array) -> Array:
    r"""Class probabilities of the instances of one bag, given the counts of all classes.

    .. math:: q_{jc} \propto p_{jc} \sum_v F_j(v) \, B_j(n - e_c - v)

    with :math:`F_j` and :math:`B_j` the laws of the counts of the instances before and after
    :math:`j`. The count of the most frequent class is what the others leave.

    Parameters
    ----------
    scores : array of shape (n_instances, n_classes)
    counts : array of shape (n_classes,)
        Whole numbers that add up to the number of instances.

    Examples
    --------
    >>> exact_classes(np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]]), np.array([1, 1, 0])).round(3)
    array([[0.833, 0.167, 0.   ],
           [0.167, 0.833, 0.   ]])
    """
    order = [c for c in np.argsort(counts, kind="stable") if counts[c] > 0]
    own, box = scores[:, order], tuple(counts[order][:-1] + 1)
    before = _running_laws(own[:-1], box)
    # Reversed in every axis, so that an index says how many are missing.
    after = np.flip(_running_laws(own[:0:-1], box))
    found, axes = np.zeros_like(scores), tuple(range(1, before.ndim))
    found[:, order[-1]] = own[:, -1] * (before * after).sum(axis=axes)
    for axis, (column, c) in enumerate(zip(own.T[:-1], order[:-1], strict=True), start=1):
        one_less, one_more = np.moveaxis(before, axis, 0)[:-1], np.moveaxis(after, axis, 0)[1:]
        # np.moveaxis puts the class first, and the instances second.
        sums = (one_less * one_more).sum(axis=tuple(a for a in range(before.ndim) if a != 1))
        found[:, c] = column * sums
    return found / found.sum(axis=1, keepdims=True)


def _running_laws(scores: Array, box: tuple[int, ...]) -> Array:
    """Laws of the counts of none, one, two ... of these instances, within the box of counts."""
    laws = np.zeros((len(scores) + 1, *box))
    laws[(0,) * laws.ndim] = 1
    for number, probabilities in enumerate(scores):
        laws[number + 1] = probabilities[-1] * laws[number]
        for axis, probability in enumerate(probabilities[:-1]):
            one_more = np.moveaxis(laws[number + 1], axis, 0)
            one_more[1:] += probability * np.moveaxis(laws[number], axis, 0)[:-1]
    return laws
