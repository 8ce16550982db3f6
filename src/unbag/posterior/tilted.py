"""Tilting: one common factor a class and bag, so that expected counts are the known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

__all__ = ["tilt_to_counts", "tilted_classes", "tilted_posterior"]

Array = NDArray[Any]
STEPS = 60  # of bisection at worst; Newton's method takes about five
CLASS_STEPS = 200
TOLERANCE = 1e-9  # of a count, relative to the size of the bag


def tilt_to_counts(logits: Array, counts: Array, sizes: Array) -> Array:
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
    tilt = np.clip(logit(rate) - np.add.reduceat(logits, starts) / sizes, low, high)
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


def tilted_classes(log_scores: Array, counts: Array, sizes: Array) -> Array:
    r"""Class probabilities given a bag's counts, all tilted by common class weights.

    .. math:: q_{jc} \propto p_{jc} \, e^{\lambda_c}, \qquad \sum_j q_{jc} = n_c

    Parameters
    ----------
    log_scores : array of shape (n_instances, n_classes)
        Finite logarithms of class probabilities, bag by bag.
    counts : array of shape (n_bags, n_classes)
        Not negative; they add up to the size of the bag.
    sizes : array of shape (n_bags,)

    Notes
    -----
    The weights minimise the convex :math:`\sum_j \log \sum_c p_{jc} e^{\lambda_c} - n^\top
    \lambda`. Newton's steps are taken where they bring the counts nearer; elsewhere one step of
    Sinkhorn's algorithm, which always lowers it.
    """
    sizes, counts = np.asarray(sizes), np.asarray(counts, dtype=float)
    starts, present = np.cumsum(sizes) - sizes, counts > 0
    log_scores = np.where(np.repeat(present, sizes, axis=0), log_scores, -np.inf)
    weights = np.zeros_like(counts)
    scores, excess = _expected(log_scores, weights, counts, sizes, starts)
    for _ in range(CLASS_STEPS):
        if (np.abs(excess) <= TOLERANCE * sizes[:, None]).all():
            break
        newton = weights - _newton_step(scores, excess, present, starts)
        tried, left = _expected(log_scores, newton, counts, sizes, starts)
        better = np.abs(left).max(axis=1) < 0.5 * np.abs(excess).max(axis=1)
        if better.all():
            weights, scores, excess = newton, tried, left
            continue
        ratio = counts / np.where(present, np.maximum(counts + excess, 1e-300), 1)
        sinkhorn = weights + np.log(np.where(present, ratio, 1))
        weights = np.where(better[:, None], newton, sinkhorn)
        scores, excess = _expected(log_scores, weights, counts, sizes, starts)
    return scores


def _expected(
    log_scores: Array, weights: Array, counts: Array, sizes: Array, starts: Array
) -> tuple[Array, Array]:
    """Tilted scores, and by how much their sums exceed the counts."""
    scores = softmax(log_scores + np.repeat(weights, sizes, axis=0), axis=1)
    return scores, np.add.reduceat(scores, starts, axis=0) - counts


def _newton_step(scores: Array, excess: Array, present: Array, starts: Array) -> Array:
    """Solve with each bag's covariance of counts; a common weight of all classes moves nothing."""
    n_classes = scores.shape[1]
    rows = [np.add.reduceat(scores * scores[:, [c]], starts, axis=0) for c in range(n_classes)]
    covariance = -np.stack(rows, axis=1)
    own = np.arange(n_classes)
    covariance[:, own, own] += np.add.reduceat(scores, starts, axis=0)
    # Absent classes have no equation; the ones fix the common weight.
    scale = np.maximum(covariance[:, own, own].max(axis=1), 1e-300)[:, None]
    covariance += scale[:, None] / n_classes
    covariance[:, own, own] += np.where(present, 1e-12, 1.0) * scale
    step = np.linalg.solve(covariance, excess[:, :, None])[:, :, 0]
    return np.where(present, np.clip(step, -5, 5), 0)
