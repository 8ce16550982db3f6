"""Simulated classifiers whose every metric is known, and bags drawn from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from unbag.evaluation.positives import ScoreTable

__all__ = ["World", "make_world", "unequal_sizes"]

Array = NDArray[Any]


@dataclass(frozen=True)
class World:
    """A population: scores, the share of instances at each, and the true chance of a positive."""

    scores: Array
    shares: Array
    chances: Array

    def labelled(self) -> tuple[Array, Array, Array]:
        """Labels, scores and weights from which metrics of the population can be computed."""
        labels = np.repeat([1, 0], len(self.scores))
        weights = np.concatenate([self.shares * self.chances, self.shares * (1 - self.chances)])
        return labels, np.tile(self.scores, 2), weights

    def errors(self, threshold: float = 0.5) -> tuple[float, float, float]:
        """Shares of false positives, false negatives and positive predictions."""
        hard = self.scores > threshold
        false_positives = (self.shares * (1 - self.chances))[hard].sum()
        false_negatives = (self.shares * self.chances)[~hard].sum()
        return float(false_positives), float(false_negatives), float(self.shares[hard].sum())

    def draw(self, rng: np.random.Generator, sizes: Array, *, noise: float = 0.0) -> ScoreTable:
        """Draw bags of these sizes; `noise` is the variance of Laplace noise in their counts."""
        counts = rng.multinomial(sizes, self.labelled()[2])
        positive, negative = np.split(counts, 2, axis=1)
        proportions = positive.sum(axis=1) / sizes
        proportions = proportions + rng.laplace(size=len(sizes)) * np.sqrt(noise / 2) / sizes
        return self.table(positive + negative, proportions, sizes, noise)

    def table(self, counts: Array, proportions: Array, sizes: Array, noise: float) -> ScoreTable:
        """Bags with these counts of instances at each score."""
        used = counts.sum(axis=0) > 0
        counts = counts[:, used]
        return ScoreTable(
            self.scores[used],
            counts.sum(axis=0) / sizes.sum(),
            counts / sizes[:, None],
            proportions,
            sizes.astype(float),
            noise / sizes.astype(float) ** 2,
        )


def make_world(
    error: float, *, n_scores: int = 40, sharpness: float = 1.3, shift: float = 0.2
) -> World:
    """Make a classifier with this error.

    The chance of a positive is logistic in a normal variable. The scores are too sharp and too
    high, so that the classifier is neither calibrated nor the best; positives are more than half.

    Examples
    --------
    >>> false_positives, false_negatives, _ = make_world(0.1).errors()
    >>> round(false_positives + false_negatives, 6)
    0.1
    """
    normal = stats.norm.ppf((np.arange(n_scores) + 0.5) / n_scores) + 0.15
    shares = np.full(n_scores, 1 / n_scores)

    def world(steepness: float) -> World:
        scores = special.expit(sharpness * steepness * normal + shift)
        return World(scores, shares, special.expit(steepness * normal))

    def gap(steepness: float) -> float:
        return sum(world(steepness).errors()[:2]) - error

    return world(optimize.brentq(gap, 0.01, 200))


def unequal_sizes(bag_size: int, n_bags: int) -> Array:
    """Sizes that differ by a factor of up to 16, with about this mean.

    Examples
    --------
    >>> unequal_sizes(50, 5)
    array([  8,  16,  32,  64, 130])
    """
    spread = np.exp(np.linspace(-1.4, 1.4, n_bags))
    return np.maximum(2, np.round(bag_size * spread / spread.mean())).astype(int)
