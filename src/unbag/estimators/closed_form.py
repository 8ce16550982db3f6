"""Ridge regression of proportions on bag means, all penalties from one decomposition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.evaluation.residual_moments import noise_of
from unbag.evaluation.risk import pairwise_value

Array = NDArray[Any]
LABEL_VARIANCE = 0.25  # the largest that a label can have, and that of a guess
LARGEST_FEATURE = 1e140  # squares, times as many rows as there may be, are finite


@dataclass(frozen=True, eq=False)
class BagStatistics:
    """Statistics of bags for closed-form learning; `variance` is that of a single label."""

    means: Array
    proportions: Array
    sizes: Array
    noise: Array
    variance: float = LABEL_VARIANCE

    @classmethod
    def of(cls, data: Bags) -> BagStatistics:
        """Statistics of all bags."""
        found = cls(
            _bag_means(data),
            data.proportions.reshape(data.n_bags, -1),
            data.effective_sizes,
            noise_of(data),
        )
        if data.task != "amount":
            return found
        variance = amount_variance(found.proportions, found.sizes, found.noise)
        return replace(found, variance=variance)

    def check(self) -> None:
        """Raise if squares of features exceed double precision."""
        largest = np.abs(self.means).max(axis=0)
        if not (largest < LARGEST_FEATURE).all():
            column = int(np.argmax(largest))
            raise BagDataError(
                f"X must hold numbers below {LARGEST_FEATURE:g} in size, but the bag means of "
                f"column {column} reach {largest[column]:.3g}. Rescale it, or take its logarithm."
            )

    def joined(self, other: BagStatistics) -> BagStatistics:
        """Statistics of these bags and others."""
        names = ("means", "proportions", "sizes", "noise")
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names
        }
        return replace(self, **both)

    def take(self, chosen: Array) -> BagStatistics:
        """Of some of the bags."""
        names = ("means", "proportions", "sizes", "noise")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def along(self, directions: Array) -> BagStatistics:
        """Statistics of the features projected on directions, one per column."""
        return replace(self, means=self.means @ directions)

    @property
    def weights(self) -> Array:
        """Weight of each bag."""
        return residual_weights(self.sizes, self.noise, self.variance)


def amount_variance(averages: Array, sizes: Array, noise: Array) -> float:
    """Variance of single amounts by the method of Mandel and Paule.

    Residuals weighted by it have their expected size, so very noisy bags have little influence. One
    without noise, where weights do not depend on it.
    """
    values = averages.reshape(-1)
    highest = pairwise_value(values - np.average(values, weights=sizes), sizes)
    if not noise.any() or highest == 0:
        return 1.0

    def excess(logarithm: float) -> float:
        weights = sizes / (np.exp(logarithm) + sizes * noise)
        squares = (values - np.average(values, weights=weights)) ** 2
        return float(weights @ squares) - len(values) + 1

    low, high = np.log(highest) - 20, np.log(highest) + 1
    return float(np.exp(optimize.brentq(excess, low, high) if excess(low) > 0 else low))


def residual_weights(sizes: Array, noise: Array, variance: float = LABEL_VARIANCE) -> Array:
    """Inverse variance of each bag's residual up to a factor; for exact bags their size.

    A residual has variance (R - B)/k + noise, and R - B is at most the variance of a single label.
    """
    return sizes / (1 + sizes * noise / variance)


def _bag_means(data: Bags, chunk: int = 2_000_000) -> Array:
    """Bag means in double precision, gathering about `chunk` numbers at a time."""
    means = np.empty((data.n_bags, data.X.shape[1]))
    per_bag = data.sizes.mean() * data.X.shape[1]
    step = max(1, int(chunk / per_bag))
    for start in range(0, data.n_bags, step):
        positions = np.arange(start, min(start + step, data.n_bags))
        sizes = data.sizes[positions]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        rows = data.rows_of(positions)
        instances = np.asarray(data.X[rows], dtype=float)
        if data.weights is not None:
            instances = instances * data.weights[rows][:, None]
        sums = np.add.reduceat(instances, starts, axis=0)
        means[positions] = sums / data.totals[positions][:, None]
    return means


def principal_directions(X: Array, chunk: int = 8192) -> Array:
    """Principal directions of the instances, one per column, by decreasing variance."""
    centre = np.mean(X, axis=0, dtype=float)
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), chunk):
        part = X[start : start + chunk] - centre
        covariance += part.T @ part
    return np.linalg.eigh(covariance)[1][:, ::-1]


class RidgeSolution:
    """Centred, weighted bag means, and the eigenvectors of the smaller of their Gram matrices.

    With `standardise`, the penalty applies to weights of standardised features.
    """

    def __init__(self, bags: BagStatistics, *, standardise: bool = False) -> None:
        self.weights, self.sizes, self.noise = bags.weights, bags.sizes, bags.noise
        self.share = self.weights / self.weights.sum()
        self.mean_x = self.share @ bags.means
        self.mean_y = self.share @ bags.proportions
        root = np.sqrt(self.share)[:, None]
        self.design = root * (bags.means - self.mean_x)
        self.scale = _deviations(self.design) if standardise else np.ones(self.design.shape[1])
        self.design /= self.scale
        self.target = root * (bags.proportions - self.mean_y)
        self.squares, self.left = _eigenvectors(self.design)
        self.rotated = self.left.T @ self.target
        # Penalties are in units of the mean squared singular value, so that scale does not matter.
        self.unit = float(self.squares.mean())

    def leave_one_out(self, penalty: float) -> float:
        """Instance square loss, estimated from each bag's residual under the fit without it.

        A bag estimates it by its size times its squared residual minus noise. Bags are weighted as
        in the fit, so equally without noise.
        """
        shrinkage = self.squares / (self.squares + penalty * self.unit)
        residual = self.target - self.left @ (shrinkage[:, None] * self.rotated)
        # The intercept is refitted too, which is the share a bag has in the weighted mean.
        leverage = self.left**2 @ shrinkage + self.share
        left_out = residual / (np.maximum(1 - leverage, 1e-12) * np.sqrt(self.share))[:, None]
        excess = (left_out**2 - self.noise[:, None]).sum(axis=1)
        return float((self.weights * excess).sum() / (self.weights / self.sizes).sum())

    def coefficients(self, penalty: float) -> tuple[Array, Array]:
        """Weights of the features, and the intercept."""
        scaled = self.rotated / (self.squares + penalty * self.unit)[:, None]
        weights = self.design.T @ (self.left @ scaled) / self.scale[:, None]
        return weights, self.mean_y - self.mean_x @ weights


def _deviations(design: Array) -> Array:
    """Deviation of each column; one for columns that vary by rounding only."""
    deviations = np.sqrt((design**2).sum(axis=0))
    return np.where(deviations > 1e-12 * max(deviations.max(), 1e-300), deviations, 1.0)


def _eigenvectors(design: Array) -> tuple[Array, Array]:
    """Squared singular values and left singular vectors, except those that are rounding errors."""
    wide = design.shape[0] <= design.shape[1]
    squares, vectors = np.linalg.eigh(design @ design.T if wide else design.T @ design)
    kept = squares > 1e-12 * max(squares[-1], 1e-300)
    if not kept.any():  # every bag has the same mean: only the intercept can be learned
        return np.ones(1), np.zeros((len(design), 1))
    squares, vectors = squares[kept], vectors[:, kept]
    return squares, vectors if wide else design @ vectors / np.sqrt(squares)


def project_to_simplex(scores: Array) -> Array:
    """Nearest point of the probability simplex, row by row; keeps the order of the classes."""
    descending = -np.sort(-scores, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, scores.shape[1] + 1)
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(scores - excess[np.arange(len(scores)), last][:, None], 0)
