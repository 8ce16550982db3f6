"""Gradient and curvature of the likelihood of counts or events, for boosting."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit

from unbag.bags import BagBatch, Bags
from unbag.bags.tasks import refuse_ranges
from unbag.estimators.bag_gradients import SMALLEST
from unbag.estimators.count_regression import EventCounts
from unbag.posterior.labels import exact_posterior
from unbag.rules import CountLikelihood
from unbag.rules.count_likelihood import own_logits
from unbag.training.batches import all_bags

Array = NDArray[Any]
TINY = 1e-300
# Counts of a larger variance get posteriors of second order, which are off by 0.002 at most on
# average and by 0.01 at the very most, in an eighth to a quarter of the time.
EXACT_BELOW = 2.0


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
        self.noise = (self.batch.bag_sizes.square() * self.batch.noise).numpy()
        self.damping = damping(data, learning_rate)[:, None, None]
        self.tilts = np.zeros((data.n_outputs, data.n_bags))
        # Both of two classes tell the same count.
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

    @property
    def smallest_curvature(self) -> float:
        """Lower bound of the curvature of an instance."""
        return SMALLEST / float(self.sizes.max())

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
            return expit(outputs) - expected_labels(outputs, self.batch, self.tilts)
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


def expected_labels(outputs: Array, batch: BagBatch, tilts: Array | None = None) -> Array:
    """Probability of each label given its bag's count, from logits (n_instances, n_outputs).

    The same as differentiating `CountLikelihood`, but faster. `tilts` are those of
    `exact_posterior`.

    Examples
    --------
    >>> batch = BagBatch(torch.tensor([0.5, 1.0]), 2)
    >>> expected_labels(np.zeros((4, 1)), batch).round(3).ravel()
    array([0.5, 0.5, 1. , 1. ])
    """
    counts = (batch.bag_sizes * batch.targets).double().numpy()
    sizes = batch.bag_sizes[:, 0].numpy().astype(int)
    tilts = np.zeros(counts.T.shape) if tilts is None else tilts
    found = [
        exact_posterior(z, n, sizes, exact_below=EXACT_BELOW, tilts=tilt)
        for z, n, tilt in zip(outputs.T, counts.T, tilts, strict=True)
    ]
    return np.column_stack(found)


def largest_correlation(data: Bags) -> float:
    """Largest correlation of a feature between two instances of a bag; 0 for bags of one."""
    largest, pairs = 0.0, float((data.sizes * (data.sizes - 1.0)).sum())
    for feature in data.X.T:
        centred = feature - feature.mean(dtype=float)
        squares = float(centred @ centred)
        products = float(np.square(np.add.reduceat(centred, data.starts)).sum()) - squares
        if pairs and squares:
            largest = max(largest, products / pairs * len(feature) / squares)
    return largest


def _through_softmax(slopes: Array, outputs: Array) -> Array:
    """From logits of the classes' own probabilities to those of the softmax."""
    over_rest = slopes / np.maximum(expit(-outputs), TINY)
    return slopes - expit(outputs) * (over_rest.sum(axis=1, keepdims=True) - over_rest)
