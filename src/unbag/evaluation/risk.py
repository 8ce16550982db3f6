"""The 0-1 and the square risk from bags, with an interval; no instance label is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from unbag.arguments import check_choice, check_share
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.tasks import refuse_amounts, risk_scale
from unbag.errors import BagDataError
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.intervals import (
    LAPLACE_KURTOSIS,
    ResidualMoments,
    law_interval,
    square_cumulants,
)
from unbag.evaluation.residual_moments import (
    fitted_moments,
    hard_moments,
    noise_of,
    recalibrated_moments,
    score_moments,
)
from unbag.evaluation.spread import FEW_BAGS, outer_ends
from unbag.evaluation.weighting import (
    Fit,
    fit_each_part,
    fit_variance,
    group_bags,
    weighted_fit,
)

Loss = Literal["zero_one", "square"]
# D6. Risks at which the law is worked out: steps of 8 %, between which it is all but linear.
GRID = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 180)])
# D28. A cross-fitted estimate has at most this many times the variance of one of a fixed model.
CROSS_FITTED = 1.5
FEWEST_BAGS = 3  # two residuals say too little of their spread


def pairwise_value(residuals: Any, sizes: Any, noise: Any = 0.0) -> float:
    r"""Estimate the mean instance square loss from bag residuals, unbiasedly.

    With :math:`\bar r = \sum k_i r_i / N` and :math:`S^2 = \sum k_i (r_i - \bar r)^2 / (n - 1)`,

    .. math:: \hat R = \bar r^2 + (1 - 1/N) \, S^2,

    less what noise of known variance adds to it in expectation.

    Parameters
    ----------
    residuals : array of shape (n_bags,) or (n_bags, n_outputs)
        Mean score of each bag minus its proportion.
    sizes : array of shape (n_bags,)
    noise : float or array of shape (n_bags,)
        Variance of the noise in the proportions.

    Notes
    -----
    Unbiased for i.i.d. instances, for any sizes and noise; never negative without noise.

    Examples
    --------
    >>> pairwise_value([0.0, 0.5], sizes=[2, 2])
    0.25
    """
    values = np.asarray(residuals, dtype=float)
    sizes = np.asarray(sizes, dtype=float)
    noise = np.broadcast_to(np.asarray(noise, dtype=float), sizes.shape)
    values = values.reshape(len(sizes), -1)
    return weighted_fit(values, sizes, noise, np.ones_like(sizes), sizes).risk


def estimate_risk(
    scores: Any,
    bags: Bags,
    *,
    loss: Loss = "zero_one",
    confidence: float = 0.95,
    weights: Literal["optimal", "size"] = "optimal",
    noise_kurtosis: float = LAPLACE_KURTOSIS,
    parts: Sequence[Array] | None = None,
) -> Estimate:
    """Estimate the risk of single instances from bags, with a confidence interval.

    Parameters
    ----------
    scores : array of shape (n_instances,) or (n_instances, n_outputs)
        Probability of the positive label, or of each class, in the order of ``bags.X``.
    bags : Bags
        Bags the scores were not fitted on.
    loss : {"zero_one", "square"}
        Error of the hard predictions (score above 1/2, or the largest), or Brier score. With
        several labels an instance the average over labels.
    confidence : float
    weights : {"optimal", "size"}
        How bags of different size or noise are weighted: by their information about the risk, or
        all alike, which is the pairwise rule.
    noise_kurtosis : float
        Excess kurtosis of the noise in the proportions: 0 if it is normal, 3 if Laplace.
    parts : sequence of arrays, optional
        If several models made the scores, as in cross-fitting: the positions of the bags that each
        of them scored, at least two bags a model. The estimate is then of their mean risk, and
        the interval allows for what the bags of one model did to the others.

    Notes
    -----
    The estimate is unbiased when bags are random draws. The interval inverts the law which the
    estimate has for each risk (spread and skewness included), because near small risks, where
    spread shrinks with the risk, a normal interval covers too little.

    Examples
    --------
    >>> scores = np.array([0.9, 0.2, 0.8, 0.1, 0.7, 0.3])
    >>> bags = Bags.from_arrays(np.zeros((6, 1)), offsets=[0, 2, 4, 6], counts=[1, 1, 1])
    >>> estimate_risk(scores, bags).value
    0.0
    """
    check_choice("loss", loss, get_args(Loss))
    soft = checked_scores(scores, bags)
    hard = loss == "zero_one"
    values = decisions(soft, bags.task) if hard else soft
    residuals = bags.mean(values) - bags.proportions.reshape(bags.n_bags, -1)
    law = hard_moments(bags) if hard else score_moments(soft[bags.rows], bags.task)
    interval_law = law if hard else recalibrated_moments(soft, bags)
    estimate = risk_from_residuals(
        residuals,
        bags.sizes,
        noise_of(bags),
        law=replace(law, noise_kurtosis=noise_kurtosis),
        interval_law=replace(interval_law, noise_kurtosis=noise_kurtosis),
        confidence=confidence,
        weights=weights,
        parts=parts,
    )
    return estimate.scaled(risk_scale(bags.task, bags.n_outputs, hard=hard))


def risk_from_residuals(
    residuals: Array,
    sizes: Array,
    noise: Array,
    *,
    law: ResidualMoments,
    interval_law: ResidualMoments | None = None,
    confidence: float = 0.95,
    weights: Literal["optimal", "size"] = "optimal",
    parts: Sequence[Array] | None = None,
) -> Estimate:
    """Estimate the mean square of instance residuals, given those of bags (n_bags, n_outputs).

    Weights come from `law`, which must not depend on the residuals. The interval comes from
    `interval_law`, which may; None takes `law`.
    """
    check_share("confidence", confidence)
    sizes = sizes.astype(float)
    if parts is None:
        fit = fit_variance(residuals, sizes, noise, law=law, weights=weights)
    else:
        fit, residuals = fit_each_part(residuals, sizes, noise, parts, law=law, weights=weights)
    law = fitted_moments(interval_law or law, fit, residuals, sizes, noise)
    risks = GRID * law.highest
    deviation, skewness = law_of_estimate(law, fit, risks, sizes, noise)
    inflation = 1.0 if parts is None else np.sqrt(CROSS_FITTED)
    deviation = inflation * deviation
    low, high = law_interval(fit.risk, risks, deviation, skewness, confidence)
    if len(sizes) < FEW_BAGS or parts is not None:
        parts_of_bags = inflation * _contributions(fit, residuals, sizes, noise)
        low, high = outer_ends((low, high), fit.risk, parts_of_bags, confidence=confidence)
        if law.n_outputs == law.fourth == 1:
            # D18. A hard residual is -1, 0 or 1, so that R is at least the size of its mean.
            size = abs(float(fit.mean[0]))
            high = max(high, size + 2 * np.sqrt(size / sizes.sum()))
    if not residuals.any() and not noise.any():
        # D6. The rule of three: no wrong one in N instances has chance 5 % if a share 3 / N is
        # wrong.
        high = max(high, -np.log(1 - confidence) * law.highest / sizes.sum())
    # Bags without any residual have no spread of their own, but they do have an interval.
    error = float(np.interp(fit.risk, risks, deviation)) or high / 2
    bounds = (0.0, law.highest, len(sizes), confidence)
    if len(sizes) < FEWEST_BAGS:
        return Estimate(fit.risk, np.nan, np.nan, error, *bounds, reason="fewer than three bags")
    return Estimate(fit.risk, low, high, error, *bounds)


def _contributions(fit: Fit, residuals: Array, sizes: Array, noise: Array) -> Array:
    """What each bag adds to the risk, to first order (D18)."""
    centred = residuals - fit.mean
    squares = sizes * ((centred**2).sum(axis=1) - residuals.shape[1] * noise)
    return fit.weights * (squares - fit.variance) + 2 * fit.shares * (centred @ fit.mean)


def law_of_estimate(
    law: ResidualMoments, fit: Fit, risks: Array, sizes: Array, noise: Array
) -> tuple[Array, Array]:
    """Standard deviation and skewness of the estimate, for each risk (D4)."""
    *kinds, where = group_bags(sizes, noise)
    spread, third = square_cumulants(law, risks, *kinds)
    variance = spread @ np.bincount(where, fit.weights**2)
    squared_mean = risks * (1 - law.variance)
    of_mean = np.outer(risks * law.variance, fit.shares**2 @ (1 / sizes)) + fit.shares**2 @ noise
    variance = variance + 4 * squared_mean * of_mean[:, 0] + 2 * of_mean[:, 0] ** 2
    deviation = np.sqrt(variance)
    third = third @ np.bincount(where, fit.weights**3)
    return deviation, np.where(deviation > 0, third / np.where(deviation > 0, deviation, 1) ** 3, 0)


def checked_scores(scores: Any, bags: Bags) -> Array:
    """Scores as floats of shape (n_instances, n_outputs), or an error that names what is wrong."""
    refuse_amounts(bags.task, "An estimate from probabilities")
    if hasattr(scores, "detach"):
        scores = scores.detach().cpu()
    values = np.asarray(scores, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    if bags.task == "binary" and values.shape[1:] == (2,):
        values = values[:, 1:]
    if values.shape != (len(bags.X), bags.n_outputs):
        raise BagDataError(
            f"scores must have shape ({len(bags.X)}, {bags.n_outputs}), one row per instance of "
            f"bags.X, got {values.shape}."
        )
    if not ((values >= 0) & (values <= 1)).all():
        raise BagDataError(
            "scores must be probabilities in [0, 1]. Pass predict_proba, or the sigmoid or softmax "
            "of logits."
        )
    return values


def decisions(scores: Array, task: str) -> Array:
    """Hard predictions, one-hot for several classes; a score of exactly 1/2 predicts 0."""
    if task != "multiclass":
        return (scores > 0.5).astype(float)
    return np.eye(scores.shape[1])[scores.argmax(axis=1)]
