"""Gradient and curvature of the debiased square loss over all bags, for boosting."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit, softmax

from unbag.bags import Bags, Task
from unbag.estimators.closed_form import LABEL_VARIANCE, amount_variance, residual_weights
from unbag.evaluation.residual_moments import noise_of

Array = NDArray[Any]
# LightGBM tells an empty leaf by its curvature, which therefore must not vanish. This is the
# squared slope of the logistic function at a score of 0.99.
SMALLEST = 1e-4


class BagGradients:
    r"""The pairwise debiased square loss, times the number of instances, for boosting.

    With residuals :math:`r_i`, weights :math:`w_i` (the sizes :math:`k_i` of exact bags),
    :math:`W = \sum w_i` and :math:`\bar r = \sum w_i r_i / W`, the loss is
    :math:`N (\bar r^2 + c \sum w_i (r_i - \bar r)^2)` with :math:`c = (1 - 1/N)/(n - 1)`. Instances
    must be in the order of bags.

    The curvature is the diagonal of the Gauss-Newton matrix, and never quite zero. Instances of a
    bag share a residual, so the matrix has large off-diagonal entries; but centring removes what
    the instances of a leaf have in common, and for random bags the curvature along any leaf is the
    sum of the diagonal, up to 1/n. Noise of known variance adds a constant to the loss, and reduces
    weights as for `BagRidgeClassifier`.
    """

    default_penalty: ClassVar[float] = 50.0
    default_runs: ClassVar[int] = 3

    def __init__(self, data: Bags) -> None:
        self.task: Task = data.task
        self.sizes, self.starts = data.effective_sizes, data.starts
        self.repeats, self.shares = data.sizes, shares_of(data)[:, None]
        self.targets = data.proportions.reshape(data.n_bags, -1)
        amounts, noise = data.task == "amount", noise_of(data)
        variance = amount_variance(self.targets, self.sizes, noise) if amounts else LABEL_VARIANCE
        self.weights = residual_weights(self.sizes, noise, variance)
        self.spread_weight = (1 - 1 / data.n_instances) / (data.n_bags - 1)
        self.curvature = self._curvature()

    def __call__(self, raw: Array) -> tuple[Array, Array]:
        """Gradient and curvature at raw scores (n_instances, n_outputs), of the same shape."""
        scores = scores_of_raw(raw, self.task)
        outer = self.shares * self._spread(len(raw) * self._residual_gradient(scores))
        slopes, squared_slopes = self._through_link(outer, scores)
        curvature = self.shares**2 * self._spread(self.curvature[:, None])
        return slopes, curvature * np.maximum(squared_slopes, SMALLEST)

    @property
    def smallest_curvature(self) -> float:
        """Lower bound of the curvature of an instance."""
        return SMALLEST * float((self.shares**2 * self._spread(self.curvature[:, None])).min())

    def residuals(self, scores: Array) -> Array:
        """Mean score minus proportion, shape (n_bags, n_outputs)."""
        return np.add.reduceat(self.shares * scores, self.starts) - self.targets

    def _residual_gradient(self, scores: Array) -> Array:
        residuals = self.residuals(scores)
        mean = np.average(residuals, axis=0, weights=self.weights)
        inner = mean / self.weights.sum() + self.spread_weight * (residuals - mean)
        return 2 * self.weights[:, None] * inner

    def _curvature(self) -> Array:
        """Second derivative of the loss by the residual of each bag."""
        share = self.weights / self.weights.sum()
        by_residual = 2 * (share**2 + self.spread_weight * self.weights * (1 - share))
        return len(self.shares) * by_residual

    def _through_link(self, outer: Array, scores: Array) -> tuple[Array, Array]:
        """Gradient with respect to raw scores, and the squared norm of the link's derivative."""
        if self.task == "amount":
            return outer, np.ones_like(outer)
        if self.task != "multiclass":
            slope = scores * (1 - scores)
            return outer * slope, slope**2
        inner = (outer * scores).sum(axis=1, keepdims=True)
        norms = 1 - 2 * scores + (scores**2).sum(axis=1, keepdims=True)
        return scores * (outer - inner), scores**2 * norms

    def _spread(self, values: Array) -> Array:
        return np.repeat(values, self.repeats, axis=0)


def shares_of(data: Bags) -> Array:
    """Share of each instance in the average of its bag, bag by bag."""
    own = 1.0 if data.weights is None else data.weights[data.rows]
    return np.asarray(own / np.repeat(data.totals, data.sizes))


def scores_of_raw(raw: Array, task: Task) -> Array:
    """Turn raw scores (n_instances, n_outputs) into probabilities; amounts are raw scores."""
    if task == "amount":
        return raw
    return softmax(raw, axis=1) if task == "multiclass" else expit(raw)


def initial_scores(data: Bags) -> Array:
    """Raw scores of the prior, shape (n_outputs,)."""
    if data.task == "amount":
        return np.atleast_1d(data.prior)
    half = 0.5 / data.n_instances  # half a positive, where there is none at all
    prior = np.clip(np.atleast_1d(data.prior), half, 1 - half)
    return log_softmax(np.log(prior)) if data.task == "multiclass" else logit(prior)
