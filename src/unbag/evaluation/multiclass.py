"""What several classes need beyond one class against the rest: confusion matrix and log loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from unbag.bags import Bags
from unbag.evaluation.estimate import Estimate, student_estimate
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
        With t intervals of the jackknife over bags, NaN below three bags. Unbiased, so entries may
        be negative.

    Notes
    -----
    Noise that is independent from class to class adds to squares of a class alone, none of which
    is used: nothing need be known of it.
    """
    h, y, n_bags = bags.mean(decisions), bags.proportions, bags.n_bags
    sizes = bags.sizes.astype(float)[:, None]
    parts = np.concatenate([np.ones_like(sizes), h - y, h + y, h], axis=1)
    # Sums over bags of sizes, sized means, and sized products of residuals with both.
    products = sizes[:, :, None] * parts[:, :, None] * (h - y)[:, None, :]
    sums = np.concatenate([(sizes * parts)[:, :, None], products], axis=2)
    total = sums.sum(axis=0)
    value = _confusion(total, n_bags)
    if n_bags < 3:
        return value, value * np.nan, value * np.nan
    error = np.sqrt((n_bags - 1) * _confusion(total - sums, n_bags - 1).var(axis=0))
    half = stats.t.ppf((1 + confidence) / 2, n_bags - 1) * error
    return value, value - half, value + half


def _confusion(sums: Array, n_bags: int) -> Array:
    """Confusion matrix from sums over bags (..., 1 + 3 n_classes, 1 + n_classes)."""
    n_classes, n_instances = sums.shape[-1] - 1, sums[..., :1, :1]
    means = sums[..., :, :1] / n_instances
    gaps, chosen = means[..., 1 : 1 + n_classes, 0], means[..., 1 + 2 * n_classes :, 0]
    outer = means * gaps[..., None, :]
    # The product of two means holds a covariance too, divided by the number of instances.
    spread = (sums[..., :, 1:] - n_instances * outer) / (n_bags - 1) * (1 - 1 / n_instances)
    products = outer + spread
    squares = products[..., 1 : 1 + n_classes, :]
    crosses = products[..., 1 + n_classes : 1 + 2 * n_classes, :].swapaxes(-1, -2)
    differences = (crosses.swapaxes(-1, -2) - crosses) / 2
    # The least change by which every row sum of C - C' becomes the prior less the share chosen.
    missing = (-gaps - differences.sum(axis=-1)) / n_classes
    differences = differences + missing[..., :, None] - missing[..., None, :]
    matrix = (differences - squares) / 2 * (1 - np.eye(n_classes))
    return matrix + np.eye(n_classes) * (chosen - matrix.sum(axis=-2))[..., None, :]


def multiclass_log_loss(scores: Array, bags: Bags, *, confidence: float = 0.95) -> Estimate:
    r"""Mean of :math:`-\log f_y`, unbiased, with the scores themselves as control."""
    scores = scores[bags.rows]
    losses = -np.log(np.clip(scores, 1e-15, 1))
    beyond, paired = residual_product(losses, scores, bags)
    value = (scores * losses).sum(axis=1).mean() + beyond
    square = (scores * losses**2).sum(axis=1).mean()
    # D22. Where scores say too little of large losses, the bags' residuals do.
    square += max(residual_product(losses**2, scores, bags)[0], 0)
    error = np.sqrt(paired + max(square - value**2, 0) / bags.n_instances)
    about: dict[str, Any] = {"highest": np.inf, "n_bags": bags.n_bags}
    return student_estimate(value, error, bags.n_bags - 1, confidence=confidence, **about)
