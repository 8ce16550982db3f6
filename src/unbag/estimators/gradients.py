"""Gradients and curvatures of losses over all bags, for boosting."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from scipy.special import expit, log_softmax, logit, softmax

from unbag.arrays import Array
from unbag.bags import Bags, Task
from unbag.bags.tasks import refuse_ranges
from unbag.estimators.closed_form import residual_weights, shares_of, single_variance
from unbag.estimators.count_regression import EventCounts
from unbag.evaluation.residual_moments import noise_of
from unbag.posterior.labels import exact_posterior
from unbag.rules import CountLikelihood
from unbag.rules.count_likelihood import own_logits
from unbag.training.batches import all_bags

# LightGBM detects an empty leaf by its curvature, which therefore must not vanish. This is the
# squared slope of the logistic function at a score of 0.99.
SMALLEST = 1e-4
TINY = 1e-300
# Counts of a larger variance get posteriors of second order, which are off by 0.002 at most on
# average and by 0.01 at the very most, in an eighth to a quarter of the time.
EXACT_BELOW = 2.0


class BagGradients:
    r"""The pairwise debiased square loss, times the number of instances, for boosting.

    With residuals :math:`r_i`, weights :math:`w_i` (the sizes :math:`k_i` of exact bags),
    :math:`W = \sum w_i` and :math:`\bar r = \sum w_i r_i / W`, the loss is
    :math:`N (\bar r^2 + c \sum w_i (r_i - \bar r)^2)` with :math:`c = (1 - 1/N)/(n - 1)`. Instances
    must be in the order of bags.

    The curvature is the diagonal of the Gauss-Newton matrix, and never quite zero. Instances of a
    bag share a residual, so the matrix has large off-diagonal entries; but centring removes what
    the instances of a leaf have in common, and for random bags the curvature along any leaf is the
    sum of the diagonal, up to 1/n. For other bags it is enlarged as for `CountGradients`. Noise of
    known variance adds a constant to the loss, and reduces weights as for `BagRidgeClassifier`.
    """

    default_penalty: ClassVar[float] = 50.0
    default_runs: ClassVar[int] = 3

    def __init__(self, data: Bags, *, learning_rate: float) -> None:
        self.task: Task = data.task
        self.starts, self.repeats, self.shares = data.starts, data.sizes, shares_of(data)[:, None]
        self.targets = data.proportions.reshape(data.n_bags, -1)
        sizes, noise = data.effective_sizes, noise_of(data)
        variance = single_variance(data.task, self.targets, sizes, noise)
        self.weights = residual_weights(sizes, noise, variance)
        self.spread_weight = (1 - 1 / data.n_instances) / (data.n_bags - 1)
        share = self.weights / self.weights.sum()
        by_residual = 2 * (share**2 + self.spread_weight * self.weights * (1 - share))
        by_residual = (data.n_instances * by_residual * damping(data, learning_rate))[:, None]
        self.curvature = self.shares**2 * self._spread(by_residual)
        self.smallest_curvature = SMALLEST * float(self.curvature.min())

    def __call__(self, raw: Array) -> tuple[Array, Array]:
        """Gradient and curvature at raw scores (n_instances, n_outputs), of the same shape."""
        scores = scores_of_raw(raw, self.task)
        outer = self.shares * self._spread(len(raw) * self._residual_gradient(scores))
        slopes, squared_slopes = self._through_link(outer, scores)
        return slopes, self.curvature * np.maximum(squared_slopes, SMALLEST)

    def residuals(self, scores: Array) -> Array:
        """Mean score minus proportion, shape (n_bags, n_outputs)."""
        return np.add.reduceat(self.shares * scores, self.starts) - self.targets

    def _residual_gradient(self, scores: Array) -> Array:
        residuals = self.residuals(scores)
        mean = np.average(residuals, axis=0, weights=self.weights)
        inner = mean / self.weights.sum() + self.spread_weight * (residuals - mean)
        return 2 * self.weights[:, None] * inner

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


class CountGradients:
    r"""Minus the log likelihood of the bags' counts, summed over bags, for boosting.

    The gradient by the logit of a label is its score minus its probability given the count. The
    curvature is :math:`v_i^2 / V`, with :math:`v_i` the variance of a label and :math:`V` that of
    its bag's count. For bags of one both are those of logistic regression. Several classes have the
    likelihood of each class's own count, through the softmax.

    That curvature is the diagonal of a matrix whose off-diagonal entries add up for instances that
    move together. Two corrections keep steps from overshooting, and leave the minimum unchanged:

    - All instances move together along the constant, where bags of :math:`k` have :math:`k` times
      the curvature of the diagonal. The part of the gradient that a common shift explains is
      divided by that ratio. For random bags the diagonal is then right along any leaf, up to its
      share of the instances.
    - Instances of a bag with similar features move together in a split. With :math:`\rho` the
      largest correlation of a feature within bags, their curvature is up to about
      :math:`1 + (k - 1) \rho` times the diagonal, which is enlarged as far as the learning rate
      leaves steps too long.
    """

    default_penalty: ClassVar[float] = 1.0
    default_runs: ClassVar[int] = 1

    def __init__(self, data: Bags, *, learning_rate: float) -> None:
        refuse_ranges(data, "BagBoostingClassifier")
        self.batch = all_bags(data, dtype=torch.float64)
        self.sizes, self.starts = data.sizes, data.starts
        self.counts = (self.batch.bag_sizes * self.batch.targets).numpy()
        self.noise = (self.batch.bag_sizes.square() * self.batch.noise).numpy()
        self.damping = damping(data, learning_rate)[:, None, None]
        self.tilts = np.zeros((data.n_outputs, data.n_bags))
        self.smallest_curvature = SMALLEST / float(self.sizes.max())
        # Two classes have the same count.
        self.weight = 0.5 if data.task == "multiclass" and data.n_outputs == 2 else 1.0

    def __call__(self, raw: Array) -> tuple[Array, Array]:
        """Gradient and curvature at raw scores (n_instances, n_outputs), of the same shape."""
        outputs = self._outputs(raw)
        by_scores, precision = self._expected_counts(outputs)
        of_bags = np.add.reduceat(by_scores, self.starts)
        common = (by_scores * self._spread(of_bags * precision)).sum(axis=1)
        curvature = (by_scores**2 * self._spread(self.damping * precision)).sum(axis=1)
        slopes = with_common_step(self._gradient(outputs), curvature, common)
        smallest = SMALLEST / self._spread(self.sizes)[:, None]
        return slopes, np.maximum(self.weight * curvature, smallest)

    def gradient(self, raw: Array) -> Array:
        """Gradient of the loss, without corrections for overshooting."""
        return self._gradient(self._outputs(raw))

    def _gradient(self, outputs: Array) -> Array:
        excess = self.weight * self._excess(outputs)
        return _through_softmax(excess, outputs) if self.batch.task == "multiclass" else excess

    def _outputs(self, raw: Array) -> Array:
        logits = torch.from_numpy(raw[:, 0] if self.batch.task == "binary" else raw)
        return own_logits(logits, self.batch).numpy()

    def _excess(self, outputs: Array) -> Array:
        """Score of each label minus its probability given the count of its bag."""
        if self.batch.noise_variance is None:
            given = [
                exact_posterior(z, n, self.sizes, exact_below=EXACT_BELOW, tilts=tilts)
                for z, n, tilts in zip(outputs.T, self.counts.T, self.tilts, strict=True)
            ]
            return expit(outputs) - np.column_stack(given)
        logits = torch.from_numpy(outputs).requires_grad_()
        loss = CountLikelihood().of_each_bag(logits, self.batch).sum()
        return torch.autograd.grad(loss, logits)[0].numpy()

    def _expected_counts(self, outputs: Array) -> tuple[Array, Array]:
        """Derivatives of expected counts by raw scores, and the inverse variances of the counts.

        Shapes (n_instances, n_counts, n_outputs) and (n_bags, n_counts, n_outputs). Only the count
        of a class depends on all outputs; others have an axis of one.
        """
        scores = expit(outputs)
        variance = scores * (1 - scores)
        of_counts = np.add.reduceat(variance, self.starts) + self.noise
        precision = 1 / np.maximum(of_counts, TINY)
        if self.batch.task != "multiclass":
            return variance[:, None, :], precision[:, None, :]
        slopes = scores[:, :, None] * scores[:, None, :]
        classes = np.arange(scores.shape[1])
        slopes[:, classes, classes] = variance
        return slopes, precision[:, :, None]

    def _spread(self, values: Array) -> Array:
        return np.repeat(values, self.sizes, axis=0)


class EventGradients:
    r"""Minus the log likelihood of numbers of events, summed over bags, for boosting.

    With :math:`\mu_j` the expected events of an instance and :math:`m_i` those of its bag, the
    gradient by the log rate is :math:`\mu_j (1 - n_i / m_i)`, and the curvature :math:`\mu_j^2 /
    m_i`. For bags of one both are those of Poisson regression. Corrections are those of
    `CountGradients`.
    """

    default_penalty: ClassVar[float] = 1.0
    default_runs: ClassVar[int] = 3

    def __init__(self, data: Bags, *, learning_rate: float) -> None:
        self.events = EventCounts.events(data)
        self.damping = damping(data, learning_rate)
        rate = self.events.counts.sum() / data.n_instances
        self.smallest_curvature = SMALLEST * float(rate / data.sizes.max())

    def __call__(self, raw: Array) -> tuple[Array, Array]:
        """Gradient and curvature at log rates (n_instances, 1), of the same shape."""
        expected = self.events.scores(raw[:, 0])
        curvature = expected**2 * self._spread(self.damping / self._means(expected))
        columns = self.gradient(raw), curvature[:, None], expected[:, None]
        return with_common_step(*columns), np.maximum(curvature, self.smallest_curvature)[:, None]

    def gradient(self, raw: Array) -> Array:
        """Gradient of the loss, without corrections for overshooting."""
        expected = self.events.scores(raw[:, 0])
        excess = 1 - self.events.counts / self._means(expected)
        return (expected * self._spread(excess))[:, None]

    def _means(self, expected: Array) -> Array:
        return self.events.variance(expected, 0.0)

    def _spread(self, values: Array) -> Array:
        return np.repeat(values, self.events.sizes)


def damping(data: Bags, learning_rate: float) -> Array:
    """Factor that enlarges the curvature of each bag."""
    together = 1 + (data.sizes - 1) * largest_correlation(data)
    return np.maximum(1, learning_rate * together)


def with_common_step(slopes: Array, curvature: Array, common: Array) -> Array:
    """Divide the part explained by a common shift by the ratio of its curvature to the diagonal."""
    total = np.maximum(common.sum(axis=0), TINY)
    kept = np.minimum(curvature.sum(axis=0) / total, 1)
    return slopes - (1 - kept) * common * (slopes.sum(axis=0) / total)


def largest_correlation(data: Bags) -> float:
    """Largest correlation of a feature between two instances of a bag; 0 for bags of one."""
    largest, pairs = 0.0, float((data.sizes * (data.sizes - 1.0)).sum())
    for feature in data.X.T:
        n_known = max(np.count_nonzero(~np.isnan(feature)), 1)
        centred = np.nan_to_num(feature - np.nansum(feature, dtype=float) / n_known)
        squares = float(centred @ centred)
        products = float(np.square(np.add.reduceat(centred, data.starts)).sum()) - squares
        if pairs and squares:
            largest = max(largest, products / pairs * len(feature) / squares)
    return largest


def _through_softmax(slopes: Array, outputs: Array) -> Array:
    """From logits of the classes' own probabilities to those of the softmax."""
    over_rest = slopes / np.maximum(expit(-outputs), TINY)
    return slopes - expit(outputs) * (over_rest.sum(axis=1, keepdims=True) - over_rest)


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
