"""Simulated worlds whose every metric is known: few scores, known chances of a positive."""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from unbag.evaluation.functionals import ScoreTable


@dataclass(frozen=True)
class World:
    """Scores, their shares, and the true chance of a positive at each."""

    scores: np.ndarray
    shares: np.ndarray
    chances: np.ndarray

    def labelled(self):
        """Labels, scores and weights that scikit-learn's metrics can be computed from."""
        labels = np.repeat([1, 0], len(self.scores))
        weights = np.concatenate([self.shares * self.chances, self.shares * (1 - self.chances)])
        return labels, np.tile(self.scores, 2), weights

    def draw(self, rng, sizes, *, noise=0.0):
        """Bags of these sizes; `noise` is the variance of Laplace noise in the counts."""
        sizes = np.asarray(sizes)
        _, _, weights = self.labelled()
        counts = rng.multinomial(sizes, weights)
        positive, negative = np.split(counts, 2, axis=1)
        proportions = positive.sum(axis=1) / sizes
        proportions = proportions + rng.laplace(size=len(sizes)) * np.sqrt(noise / 2) / sizes
        return self.table(positive + negative, proportions, sizes, noise)

    def table(self, counts, proportions, sizes, noise):
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


def make_world(error, *, n_scores=40, sharpness=1.3, shift=0.2):
    """A miscalibrated classifier with this error; positives are a little more than half."""
    normal = stats.norm.ppf((np.arange(n_scores) + 0.5) / n_scores)
    shares = np.full(n_scores, 1 / n_scores)

    def world(steepness):
        chances = special.expit(steepness * (normal + 0.15))
        scores = special.expit(sharpness * steepness * (normal + 0.15) + shift)
        return World(scores, shares, chances)

    def gap(steepness):
        found = world(steepness)
        wrong = np.where(found.scores > 0.5, 1 - found.chances, found.chances)
        return shares @ wrong - error

    return world(optimize.brentq(gap, 0.01, 200))


def unequal_sizes(bag_size, n_bags):
    """Sizes spread over a factor of 16, of about this mean."""
    spread = np.exp(np.linspace(-1.4, 1.4, n_bags))
    return np.maximum(2, np.round(bag_size * spread / spread.mean())).astype(int)
