"""One label given its bag's count: exactly by the Poisson-binomial law, or by tilting.

Tilting multiplies all odds in a bag by one factor, so that the expected count is the known one.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit

from unbag.arrays import Array

STEPS = 60  # of bisection at worst; Newton's method takes about five
TOLERANCE = 1e-9  # of a count, relative to the size of the bag
NUMBERS_AT_ONCE = 2**15  # complex ones, half a MiB: what stays close to a core
TINY = 1e-300


def tilt_to_counts(
    logits: Array, counts: Array, sizes: Array, *, start: Array | None = None
) -> Array:
    r"""Find the shift of each bag's logits for which its expected count is the known one.

    .. math:: \sum_j \sigma(z_j + \theta) = n

    Newton's method for all bags at once, with a bisection wherever it would leave the bracket.
    Logits are finite and come bag by bag; counts lie strictly between 0 and the bag's size. `start`
    are shifts that may be near; None takes those that are right for equal logits.
    """
    starts, margin = np.cumsum(sizes) - sizes, np.log(sizes) + 1
    rate = counts / sizes
    # A score of all instances alike, or one of them alone, has the count already.
    low = np.minimum(logit(rate), -margin) - np.maximum.reduceat(logits, starts)
    high = np.maximum(logit(rate), margin) - np.minimum.reduceat(logits, starts)
    if start is None:
        start = logit(rate) - np.add.reduceat(logits, starts) / sizes
    tilt = np.clip(start, low, high)
    for _ in range(STEPS):
        scores = expit(logits + np.repeat(tilt, sizes))
        excess = np.add.reduceat(scores, starts) - counts
        if (np.abs(excess) <= TOLERANCE * sizes).all():
            break
        low, high = np.where(excess > 0, low, tilt), np.where(excess > 0, tilt, high)
        variance = np.add.reduceat(scores * (1 - scores), starts)
        newton = tilt - excess / np.maximum(variance, 1e-300)
        tilt = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
    return tilt


def tilted_posterior(logits: Array, counts: Array, sizes: Array) -> Array:
    r"""Approximate label probabilities given the count: :math:`q_j = \sigma(z_j + \theta)`.

    The saddle point of the exact law. Its error is of the order of one over the variance of the
    count; counts of none and of all give it exactly.
    Arguments are those of `tilt_to_counts`; counts may be 0 or the size of the bag.
    """
    return _tilted(logits, np.asarray(counts, dtype=float), np.asarray(sizes))[0]


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

    Logits come bag by bag; counts are rounded. Bags whose tilted count has at least the variance
    `exact_below` get the formula of `second_order`. `tilts` are shifts of logits to start from,
    such as those of similar logits, and are replaced by the right ones.

    Notes
    -----
    Tilting all logits of a bag by one number changes no probability given the count, and makes that
    count the likeliest. The laws with and without one label then come from a Fourier transform of
    the order of :math:`\sqrt{k}` frequencies: an instance costs :math:`O(\sqrt{k})`.
    """
    counts, sizes = np.rint(np.asarray(counts, dtype=float)), np.asarray(sizes)
    found, inside = _tilted(logits, counts, sizes, tilts)
    if not inside.any():
        return found
    rows, counts, sizes = np.repeat(inside, sizes), counts[inside], sizes[inside]
    scores = found[rows]
    given, variance = second_order(scores, sizes)
    narrow = variance < exact_below
    if narrow.any():
        own = np.repeat(narrow, sizes)
        given[own] = _given_counts(scores[own], counts[narrow], sizes[narrow])
    found[rows] = np.clip(given, 0, 1)
    return found


def _tilted(
    logits: Array, counts: Array, sizes: Array, tilts: Array | None = None
) -> tuple[Array, Array]:
    """Probabilities by tilting, and which bags have counts between none and all."""
    inside = (counts > 0) & (counts < sizes)
    found, rows = np.repeat((counts > 0).astype(float), sizes), np.repeat(inside, sizes)
    if inside.any():
        start = None if tilts is None else tilts[inside]
        tilt = tilt_to_counts(logits[rows], counts[inside], sizes[inside], start=start)
        if tilts is not None:
            tilts[inside] = tilt
        found[rows] = expit(logits[rows] + np.repeat(tilt, sizes[inside]))
    return found, inside


def second_order(scores: Array, sizes: Array) -> tuple[Array, Array]:
    r"""Label probabilities given a count, from tilted ones, and the variance of that count.

    With tilted probabilities :math:`p_j`, :math:`v_j = p_j (1 - p_j)`, the variance :math:`V` and
    the third cumulant :math:`\kappa` of the tilted count,

    .. math:: q_j = p_j + \frac{v_j}{2 V} \Big(2 p_j - 1 + \frac{\kappa}{V}\Big) + O(V^{-2}).

    The Edgeworth expansion of the exact law: tilting alone, whose error is of the order of
    :math:`1 / V`, leaves out that a count between none and all is more certain than its labels.
    Posteriors of a bag add up to its count, as exact ones do.
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
