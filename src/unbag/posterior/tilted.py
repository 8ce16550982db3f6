"""Tilting: one common factor of all odds in a bag, so that its expected count is the known one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

__all__ = ["tilt_to_counts", "tilted_posterior"]

Array = NDArray[Any]
STEPS = 60  # of bisection at worst; Newton's method takes about five
TOLERANCE = 1e-9  # of a count, relative to the size of the bag


def tilt_to_counts(
    logits: Array, counts: Array, sizes: Array, *, start: Array | None = None
) -> Array:
    r"""Find the shift of each bag's logits for which its expected count is the known one.

    .. math:: \sum_j \sigma(z_j + \theta) = n

    Newton's method for all bags at once, with a bisection wherever it would leave the bracket.

    Parameters
    ----------
    logits : array of shape (n_instances,)
        Finite, bag by bag.
    counts : array of shape (n_bags,)
        Strictly between 0 and the bag's size; they need not be whole.
    sizes : array of shape (n_bags,)
    start : array of shape (n_bags,), optional
        Shifts that may be near; None takes those that are right for equal logits.

    Examples
    --------
    >>> tilt_to_counts(np.array([0.0, 0.0, 0.0, 0.0]), np.array([3.0]), np.array([4])).round(4)
    array([1.0986])
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

    Parameters
    ----------
    logits, counts, sizes
        As for `tilt_to_counts`; counts may be 0 or the size of the bag.

    Examples
    --------
    >>> tilted_posterior(np.array([0.0, 0.0, 3.0, 1.0]), [1, 2], [2, 2])
    array([0.5, 0.5, 1. , 1. ])
    """
    sizes, counts = np.asarray(sizes), np.asarray(counts, dtype=float)
    inside = (counts > 0) & (counts < sizes)
    found = np.repeat((counts > 0).astype(float), sizes)
    rows = np.repeat(inside, sizes)
    if inside.any():
        tilt = tilt_to_counts(logits[rows], counts[inside], sizes[inside])
        found[rows] = expit(logits[rows] + np.repeat(tilt, sizes[inside]))
    return found
