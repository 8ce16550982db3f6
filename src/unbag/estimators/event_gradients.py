"""Gradient and curvature of the Poisson likelihood of all bags' events, for boosting."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.estimators.bag_gradients import SMALLEST
from unbag.estimators.count_gradients import damping, with_common_step
from unbag.estimators.count_regression import EventCounts

__all__ = ["EventGradients"]

Array = NDArray[Any]


class EventGradients:
    r"""Minus the log likelihood of numbers of events, summed over bags, as boosting wants it.

    With :math:`\mu_j` the expected events of an instance and :math:`m_i` those of its bag, the
    gradient by the log rate is :math:`\mu_j (1 - n_i / m_i)`, and the curvature
    :math:`\mu_j^2 / m_i`. For bags of one both are those of Poisson regression. Steps are kept from
    overshooting as for `CountGradients`.

    Parameters
    ----------
    data : Bags
        With the instances of the first bag first.
    learning_rate : float
        What the steps will be multiplied by.
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
        """Gradient of the loss itself, before anything is done about overshooting."""
        expected = self.events.scores(raw[:, 0])
        excess = 1 - self.events.counts / self._means(expected)
        return (expected * self._spread(excess))[:, None]

    def _means(self, expected: Array) -> Array:
        return self.events.variance(expected, 0.0)

    def _spread(self, values: Array) -> Array:
        return np.repeat(values, self.events.sizes)
