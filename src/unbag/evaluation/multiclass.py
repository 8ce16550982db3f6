"""What several classes need beyond one class against the rest: confusion matrix and log loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from unbag.bags import Bags
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.residual_covariance import residual_product

__all__ = ["confusion_matrix", "multiclass_log_loss"]

Array = NDArray[Any]


def confusion_matrix(
    decisions: Array, bags: Bags, *, confidence: float = 0.95
) -> tuple[Array, Array, Array]:
    r"""Share of instances of each true class (rows) predicted as each class (columns).

    With one-hot predictions :math:`h` and :math:`e = h - y`, for two classes :math:`a \neq b`

    .. math:: C_{ab} + C_{ba} = -E[e_a e_b], \qquad C_{ab} - C_{ba} = -E[e_a (h_b + y_b)],

    (D21), the first precise, the second not; row sums, which are means, correct the second.

    Returns
    -------
    value, low, high : array of shape (n_classes, n_classes)
        With t intervals from the bags' contributions. Unbiased, so entries may be negative.

    Notes
    -----
    Noise that is independent from class to class adds to squares of a class alone, none of which
    is used: nothing need be known of it.
    """
    predicted = bags.mean(decisions)
    parts = _contributions(predicted, bags.proportions, bags.sizes.astype(float))
    matrices = _to_confusion(*parts)
    value = matrices.mean(axis=0)
    error = matrices.std(axis=0, ddof=1) / np.sqrt(bags.n_bags)
    half = stats.t.ppf((1 + confidence) / 2, bags.n_bags - 1) * error
    return value, value - half, value + half


def _contributions(
    predicted: Array, proportions: Array, sizes: Array
) -> tuple[Array, Array, Array, Array]:
    """Each bag's share, averaging to E[e e'], E[e (h + y)'], E[e] and E[h] (diagonals aside)."""
    shares = sizes / sizes.sum()
    # The product of two means holds a covariance too, divided by the number of instances.
    scale = len(sizes) / (len(sizes) - 1) * (1 - 1 / sizes.sum())
    residual, total = predicted - proportions, predicted + proportions
    means = shares @ residual, shares @ total
    e, t = residual - means[0], total - means[1]
    weighted = sizes[:, None, None] * scale
    squares = weighted * e[:, :, None] * e[:, None, :]
    crosses = weighted * e[:, :, None] * t[:, None, :]
    of_mean = (shares * len(sizes))[:, None]
    squares = squares + _product(means[0], means[0], of_mean * e, of_mean * e)
    crosses = crosses + _product(means[0], means[1], of_mean * e, of_mean * t)
    chosen = shares @ predicted
    return squares, crosses, means[0] + of_mean * e, chosen + of_mean * (predicted - chosen)


def _product(first: Array, second: Array, first_part: Array, second_part: Array) -> Array:
    """Product of two means, and each bag's part in it to first order."""
    middle = np.outer(first, second)
    return (
        middle
        + first_part[:, :, None] * second[None, None, :]
        + first[None, :, None] * second_part[:, None, :]
    )


def _to_confusion(squares: Array, crosses: Array, gaps: Array, chosen: Array) -> Array:
    n_classes = squares.shape[1]
    sums = -squares
    differences = -(crosses - crosses.swapaxes(1, 2)) / 2
    # The least change by which every row sum of C - C' becomes the prior less the share chosen.
    missing = (-gaps - differences.sum(axis=2)) / n_classes
    differences = differences + missing[:, :, None] - missing[:, None, :]
    matrix = (sums + differences) / 2
    diagonal = np.arange(n_classes)
    matrix[:, diagonal, diagonal] = 0
    matrix[:, diagonal, diagonal] = chosen - matrix.sum(axis=1)
    return matrix


def multiclass_log_loss(
    scores: Array, bags: Bags, noise: Array, *, confidence: float = 0.95
) -> Estimate:
    r"""Mean of :math:`-\log f_y`, unbiased, with the scores themselves as control."""
    scores = scores[bags.rows]
    losses = -np.log(np.clip(scores, 1e-15, 1))
    beyond, paired = residual_product(losses, scores, bags, noise)
    value = (scores * losses).sum(axis=1).mean() + beyond
    square = (scores * losses**2).sum(axis=1).mean()
    # D22. Where scores say too little of large losses, the bags' residuals do.
    square += max(residual_product(losses**2, scores, bags, noise)[0], 0)
    error = float(np.sqrt(paired + max(square - value**2, 0) / bags.n_instances))
    half = stats.t.ppf((1 + confidence) / 2, bags.n_bags - 1) * error
    ends = float(value - half), float(value + half)
    return Estimate(
        float(value), *ends, error, highest=np.inf, n_bags=bags.n_bags, confidence=confidence
    )
