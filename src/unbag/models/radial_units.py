"""Radial units: soft memberships of an instance in clusters, found without labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from unbag.arrays import Array
from unbag.randomness import numpy_generator

ROWS, ROUNDS = 5000, 10  # what centres are sought in, and how often they move
# Width of a unit as a share of the squared distance to the second centre. The best of 0.25, 0.5
# and 1 for a ridge on the units, on digits (splits 1 and 2) and the suite's tuning tables.
NARROW = 0.5


class RadialUnits(nn.Module):
    r"""Soft memberships of an instance in clusters.

    .. math:: u_m(x) \propto \exp\left(-\lVert x - c_m \rVert^2 / 2 s\right), \qquad
              \textstyle\sum_m u_m(x) = 1

    Centres :math:`c_m` are found by k-means, :math:`s` is half the median squared distance of an
    instance to its second centre. Features between 0 and 1, such as indicators and pixels, are used
    as they are; others are standardised. A linear model on these units is nearly constant within a
    cluster, so it learns from few bags if clusters have similar labels, as handwritten digits do.
    """

    mean: Tensor
    scale: Tensor
    centres: Tensor
    width: Tensor

    def __init__(self, n_features: int, n_units: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))
        self.register_buffer("centres", torch.zeros(n_units, n_features))
        self.register_buffer("width", torch.ones(()))

    @classmethod
    def of(cls, X: Array, *, n_units: int, seed: int) -> RadialUnits:
        """Find centres, at most one per three different instances."""
        rng = numpy_generator(seed, "centres")
        unit = (X.min(axis=0) >= 0) & (X.max(axis=0) <= 1)
        mean, scale = np.where(unit, 0, X.mean(axis=0)), np.where(unit, 1, X.std(axis=0))
        scale[scale == 0] = 1
        rows = (X[rng.permutation(len(X))[:ROWS]] - mean) / scale
        different = np.unique(rows, axis=0)
        n_units = max(1, min(n_units, (len(different) + 1) // 3))
        centres = rng.permutation(different)[:n_units]
        for _ in range(ROUNDS):
            centres = _moved(centres, rows)
        layer = cls(X.shape[1], n_units)
        values = (mean, scale, centres, max(_second_distance(centres, rows), 1e-6))
        for buffer, value in zip(layer.buffers(), values, strict=True):
            buffer.copy_(torch.as_tensor(value))
        return layer

    def forward(self, x: Tensor) -> Tensor:
        """Memberships, one a unit."""
        distances = torch.cdist((x - self.mean) / self.scale, self.centres).square()
        return (-distances / (2 * self.width)).softmax(dim=-1)


def _distances(centres: Array, rows: Array) -> Array:
    """Squared distances of rows to centres, up to a term shared by all centres."""
    return np.square(centres).sum(axis=1) - 2 * rows @ centres.T


def _moved(centres: Array, rows: Array) -> Array:
    """Means of the rows nearest to each centre; a centre without rows stays."""
    nearest = _distances(centres, rows).argmin(axis=1)
    counts = np.bincount(nearest, minlength=len(centres))
    sums = np.zeros_like(centres)
    np.add.at(sums, nearest, rows)
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)


def _second_distance(centres: Array, rows: Array) -> float:
    second = min(1, len(centres) - 1)
    found = np.partition(_distances(centres, rows), second, axis=1)[:, second]
    return NARROW * float(np.median(found + np.square(rows).sum(axis=1)))
