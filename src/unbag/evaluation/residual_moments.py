"""Moments of residuals: their shape, for the intervals of risks, and their covariances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.tasks import refuse_ranges
from unbag.evaluation.intervals import ResidualMoments
from unbag.evaluation.positives import Positives, fit_positives, score_table
from unbag.evaluation.weighting import Fit


def noise_of(bags: Bags) -> Array:
    """Noise variance of each bag's proportion; zeros when they are exact."""
    refuse_ranges(bags, "A square loss")
    return np.zeros(bags.n_bags) if bags.noise_variance is None else bags.noise_variance


def hard_moments(bags: Bags) -> ResidualMoments:
    """Shape of a hard prediction's residual: a wrong label has square norm one, a class two."""
    if bags.task == "multiclass":
        return ResidualMoments(fourth=2.0, sixth=4.0, n_outputs=bags.n_outputs)
    return ResidualMoments(n_outputs=bags.n_outputs, n_labels=bags.n_outputs)


def recalibrated_moments(soft: Array, bags: Bags) -> ResidualMoments:
    """Shape of the residuals of these scores, estimated from the bags; for intervals only."""
    if bags.task != "binary":
        return score_moments(soft[bags.rows], bags.task)
    return binary_moments(
        fit_positives(score_table(soft[:, 0], bags, bags.proportions, noise_of(bags)))
    )


def binary_moments(positives: Positives) -> ResidualMoments:
    """Shape of a score's residual, with the scores recalibrated to the bags (D12)."""
    table, chances = positives.table, positives.chances[:, None]
    return score_moments(table.scores[:, None], "binary", shares=table.shares, chances=chances)


def score_moments(
    scores: Array, task: str, *, shares: Array | None = None, chances: Array | None = None
) -> ResidualMoments:
    """Shape of a score's residual, as if the scores were calibrated; of several labels, of each.

    Proportions have no part in it, so that weights may depend on it. Instances count by their
    `shares`, or alike; `chances` of a positive replace the scores'.
    """
    n_outputs, chances = scores.shape[1], scores if chances is None else chances
    law = ResidualMoments(n_outputs=n_outputs, n_labels=1 if task == "multiclass" else n_outputs)
    if task == "multiclass":
        wrong, right = 0 * scores, (scores**2).sum(axis=1, keepdims=True) - 2 * scores + 1
    else:
        wrong, right = scores**2, (1 - scores) ** 2
    second, fourth, sixth = (
        np.average((chances * right**m + (1 - chances) * wrong**m).sum(axis=1), weights=shares)
        for m in (1, 2, 3)
    )
    return replace(law, fourth=fourth / second, sixth=sixth / second) if second else law


def fitted_moments(
    law: ResidualMoments, fit: Fit, residuals: Array, sizes: Array, noise: Array
) -> ResidualMoments:
    """Complete the shape of the residuals by estimates from the bags."""
    share = fit.variance / fit.risk if fit.risk > 0 else 1.0
    law = replace(law, variance=float(np.clip(share, 0, 1)))
    if law.n_outputs == 1:
        return law
    centred, weights = residuals - fit.mean, fit.weights / fit.weights.sum()
    covariance = (centred * (weights * sizes)[:, None]).T @ centred
    covariance -= np.eye(len(covariance)) * (weights @ (sizes * noise))
    # D7. A sample covariance's squared trace is too large by about tr(M)^2 / n.
    square = (covariance**2).sum() / max(np.trace(covariance) ** 2, 1e-300)
    square = float(np.clip(square - 1 / (1 / (weights @ weights) - 1), 1 / len(covariance), 1))
    # D7. tr(M^3) lies between the powers 2 and 1.5 of tr(M^2), for any covariance of trace one.
    law = replace(law, square_trace=square, cube_trace=square**1.75)
    squares = sizes[:, None] * (centred**2 - noise[:, None])
    return _joint_moments(law, fit, covariance, squares, sizes) if law.n_labels > 1 else law


def _joint_moments(
    law: ResidualMoments, fit: Fit, covariance: Array, squares: Array, sizes: Array
) -> ResidualMoments:
    """Complete the law of each label to that of all, by how labels' squares covary in bags (D7)."""
    variances = np.diag(covariance)
    parts, jointly = squares - variances, 2 * _of_pairs(covariance**2)
    seen = parts.sum(axis=1) ** 2 - (parts**2).sum(axis=1) - jointly * (1 - 1 / sizes)
    weights = fit.weights / (fit.weights @ (1 / sizes))
    # D7. A mean of skewed squares is mostly too low; one standard error more is on the safe side.
    error = np.sqrt(weights**2 @ (seen - seen.mean()) ** 2)
    pairs = weights @ seen + error + _of_pairs(np.outer(variances, variances))
    risk = max(fit.risk, 1 / sizes.sum())
    # Between labels wrong independently, less than which is taken for chance, and all together.
    lowest, highest = risk * (1 - 1 / law.n_labels), law.fourth * (law.n_labels - 1)
    fourth = law.fourth + float(np.clip(pairs / risk, min(lowest, highest), highest))
    return replace(law, fourth=fourth, sixth=law.sixth * (fourth / law.fourth) ** 2)


def _of_pairs(matrix: Array) -> float:
    return float(matrix.sum() - np.trace(matrix))


def residual_product(weights: Array, guesses: Array, bags: Bags) -> tuple[float, float]:
    r"""Estimate :math:`E[\sum_c w_c (y_c - g_c)]` from bags, unbiased whatever the guesses (D22).

    Weights and guesses have shape (n_instances, n_outputs), in the order ``bags.rows``. Returns the
    value and its variance, less that of the average over all instances of an instance's own
    product, which is left to the caller, who may know more of it.
    """
    sizes, n_bags, noise = bags.sizes.astype(float), bags.n_bags, noise_of(bags)
    value, level, centred = _product(weights, guesses, bags)
    covariance = (centred * sizes[:, None]).T @ centred / (n_bags - 1)
    spread = np.atleast_2d(np.cov(weights.T))
    # D22. Of the products in a bag of k instances one in k is an instance's own.
    alone = np.mean(1 / sizes)
    paired = (1 - alone) * (np.trace(covariance @ spread) + value**2)
    paired += alone * np.mean(sizes * noise) * np.trace(spread)
    own = max(_mean_square(weights, guesses, bags) - value**2, 0)
    paired += (alone - n_bags / sizes.sum()) * own
    shares = sizes / sizes.sum()
    return value, float(paired / n_bags + (shares**2 @ noise) * (level @ level))


def _product(weights: Array, guesses: Array, bags: Bags) -> tuple[float, Array, Array]:
    """Estimate of `residual_product`, the mean weights, and the centred residuals of bags."""
    sizes, n_bags = bags.sizes.astype(float), bags.n_bags
    n_instances = sizes.sum()
    of_bags = np.add.reduceat(np.hstack([weights, guesses]), bags.starts) / sizes[:, None]
    mean_weights, mean_guesses = np.hsplit(of_bags, 2)
    residuals = bags.proportions.reshape(n_bags, -1) - mean_guesses
    gap, level = (sizes / n_instances @ means for means in (residuals, mean_weights))
    centred = residuals - gap
    products = sizes @ (centred * (mean_weights - level)).sum(axis=1)
    value = gap @ level + products / (n_bags - 1) * (1 - 1 / n_instances)
    return float(value), level, centred


def risk_change(change: Array, squares: Array, guesses: Array, bags: Bags) -> tuple[float, float]:
    """Change of the square risk, :math:`E[s - 2 d y]` summed over outputs, and its variance.

    `change` is that of each prediction, :math:`d`, `squares` that of its square, :math:`s`, and
    `guesses` are those of the labels, all as for `residual_product`.
    """
    beyond, paired = residual_product(change, guesses, bags)
    value = (squares - 2 * change * guesses).sum(axis=1).mean() - 2 * beyond
    own = max(_mean_square(change, guesses, bags, squares) - value**2, 0)
    return float(value), float(4 * paired + own / bags.n_instances)


def _mean_square(change: Array, guesses: Array, bags: Bags, squares: Array | None = None) -> float:
    r"""Mean over instances of :math:`(\sum_c s_c - 2 d_c y_c)^2`; without squares of a product.

    The product is :math:`\sum_c d_c (y_c - g_c)`. Nothing is assumed to be calibrated: the mean is
    linear in the label too, and is taken from the bags where they show more than the guesses.
    """
    if squares is None:
        return _mean_square(change, guesses, bags, 2 * change * guesses) / 4
    # D23. Of several classes exactly one is true, which makes the square of their sum linear in y.
    if bags.task == "multiclass":
        constant, slope = 0.0, (squares.sum(axis=1, keepdims=True) - 2 * change) ** 2
        seen = _product(slope, guesses, bags)[0]
    else:
        guessed = squares - 2 * change * guesses
        others = guessed.sum(axis=1, keepdims=True) - guessed
        constant = (squares**2 + others * (squares + 2 * change * guesses)).sum(axis=1).mean()
        slope = 4 * change * (change - squares - others)
        seen, _, centred = _product(slope, guesses, bags)
        together = np.repeat(centred, bags.sizes, axis=0) * change
        pairs = together.sum(axis=1) ** 2 - (together**2).sum(axis=1)
        constant += 4 * pairs.sum() / (bags.n_bags - 1)
    return float(constant + (slope * guesses).sum(axis=1).mean() + max(seen, 0))
