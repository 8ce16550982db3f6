"""Generalised linear models by the likelihood of bag counts: logistic and Poisson."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, log_ndtr, logit, xlogy

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.posterior.labels import tilt_to_counts

# A count is a whole number: no law of it is narrower than rounding.
ROUNDING = 1 / 12
# Variances of a bag's effect on the logit that are tried.
EFFECTS = np.concatenate([[0.0], np.geomspace(1e-4, 4.0, 40)])
SUREST = 1e-6
LARGEST_LOG, TINY = 300.0, 1e-300
RANGE_STEPS = 20


@dataclass(frozen=True, eq=False)
class BagCounts:
    """Counts of one label per bag; `noise` is that of the counts.

    `ranges` of shape (n_bags, 2) are smallest and largest counts, if only these are known.
    """

    counts: Array
    sizes: Array
    starts: Array
    noise: Array
    ranges: Array | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, bags: Bags) -> list[BagCounts]:
        """Counts of each output."""
        values = bags.proportions.reshape(bags.n_bags, -1)
        given = 0.0 if bags.noise_variance is None else bags.noise_variance
        noise = bags.sizes**2 * np.broadcast_to(given, bags.n_bags)
        rest = bags.sizes, bags.starts, noise
        return [cls(bags.sizes * column, *rest, ranges=bags.ranges) for column in values.T]

    @property
    def rate(self) -> float:
        """Share of positive labels, strictly between 0 and 1."""
        half = 0.5 / self.sizes.sum()
        return float(np.clip(self.counts.sum() / self.sizes.sum(), half, 1 - half))

    @property
    def start(self) -> float:
        """Linear predictor of the overall rate."""
        return float(logit(self.rate))

    def scores(self, predictors: Array) -> Array:
        """Expected count of each instance."""
        return np.asarray(expit(predictors))

    def slopes(self, scores: Array) -> Array:
        """Derivatives of the scores by the linear predictors."""
        return scores * (1 - scores)

    def take(self, positions: Array) -> BagCounts:
        """Some of the bags, by increasing position, with their instances in order."""
        sizes = self.sizes[positions]
        parts = self.counts[positions], sizes, np.cumsum(sizes) - sizes, self.noise[positions]
        ranges = None if self.ranges is None else self.ranges[positions]
        return BagCounts(*parts, ranges=ranges)

    def sum(self, values: Array) -> Array:
        """Sum per-instance values over each bag."""
        return np.add.reduceat(values, self.starts, axis=0)

    def weighted_sum(self, weights: Array, X: Array) -> Array:
        """Sum weighted rows over each bag, without a copy of the rows."""
        offsets = np.append(self.starts, len(X))
        return np.asarray(csr_array((weights, np.arange(len(X)), offsets)) @ X)

    def variance(self, scores: Array, effect: float) -> Array:
        """Variance of each count, including a bag effect on the logits."""
        own = self.sum(self.slopes(scores))
        return np.maximum(own + effect * own**2 + self.noise, ROUNDING)

    def minus_log(self, scores: Array, effect: float = 0.0) -> Array:
        """Minus the log likelihood of each bag's count up to a constant, or of its range."""
        variance = self.variance(scores, effect)
        if self.ranges is not None:
            return -self._inside(scores, variance)[2]
        gap = self.counts - self.sum(scores)
        return 0.5 * (gap**2 / variance + np.log(variance))

    def expected(self, scores: Array, variance: Array) -> Array:
        """The counts, or their expectations given the ranges."""
        if self.ranges is None:
            return self.counts
        low, high, log_mass = self._inside(scores, variance)
        ends = (np.exp(-0.5 * end**2 - log_mass) for end in (low, high))
        lift = np.sqrt(variance / (2 * np.pi)) * (next(ends) - next(ends))
        return np.clip(self.sum(scores) + lift, self.ranges[:, 0], self.ranges[:, 1])

    def _inside(self, scores: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Standardised ends of the ranges, and the log probability of a count between them."""
        assert self.ranges is not None
        edges = self.ranges + np.array([-0.5, 0.5]) - self.sum(scores)[:, None]
        low, high = (edges / np.sqrt(variance)[:, None]).T
        # Of the two tails, the shorter one keeps its digits.
        small, large = np.where(low > 0, [-high, -low], [low, high])
        outer, inner = log_ndtr(large), log_ndtr(small)
        return low, high, outer + np.log1p(-np.exp(np.minimum(inner - outer, -1e-12)))

    def effect(self, scores: Array) -> float:
        """Most likely variance of a bag effect on the logits."""
        if self.ranges is not None:
            raise BagDataError("bag_effects needs proportions, got ranges of them.")
        own, square = self.sum(self.slopes(scores)), (self.counts - self.sum(scores)) ** 2
        variances = np.maximum(own + EFFECTS[:, None] * own**2 + self.noise, ROUNDING)
        return float(EFFECTS[(square / variances + np.log(variances)).sum(axis=1).argmin()])


@dataclass(frozen=True, eq=False)
class EventCounts(BagCounts):
    r"""Numbers of events of bags, Poisson with the sum of rates :math:`e_j \exp(x_j^\top w)`.

    `exposure` has shape (n_instances,), bag by bag.
    """

    exposure: Array

    @classmethod
    def events(cls, bags: Bags) -> EventCounts:
        """Events of bags of rates, whose weights are exposures."""
        weights = np.ones(len(bags.X)) if bags.weights is None else bags.weights
        counts = np.asarray(bags.totals * bags.proportions)
        return cls(counts, bags.sizes, bags.starts, np.zeros(len(counts)), weights[bags.rows])

    @property
    def start(self) -> float:
        return float(np.log(max(self.counts.sum(), 0.5) / self.exposure.sum()))

    def take(self, positions: Array) -> EventCounts:
        some, chosen = super().take(positions), np.isin(np.arange(len(self.sizes)), positions)
        return EventCounts(**vars(some), exposure=self.exposure[np.repeat(chosen, self.sizes)])

    def scores(self, predictors: Array) -> Array:
        return self.exposure * np.exp(np.minimum(predictors, LARGEST_LOG))

    def slopes(self, scores: Array) -> Array:
        return scores

    def variance(self, scores: Array, effect: float) -> Array:
        return np.maximum(self.sum(scores), TINY)

    def minus_log(self, scores: Array, effect: float = 0.0) -> Array:
        means = self.variance(scores, effect)
        return np.asarray(means - xlogy(self.counts, means))


class LogitFit(NamedTuple):
    """Weights of the columns, and the variance of bag effects."""

    weights: Array
    effect: float


def fit_logits(
    X: Array,
    data: BagCounts,
    penalties: Array,
    *,
    start: Array,
    centre: Array | float = 0.0,
    effects: bool = False,
    n_steps: int = 25,
) -> LogitFit:
    r"""Follow the score of the counts' means, as long as their penalised likelihood grows.

    With :math:`m_i` the sum of a bag's scores, :math:`D_i` its derivative by the weights and
    :math:`V_i` the variance of the count, a step solves :math:`(\sum_i D_i D_i^\top / V_i +
    \Lambda) \, \delta = \sum_i D_i (n_i - m_i) / V_i - \Lambda (w - w_0)`, halved until the
    likelihood grows. `X` has a column of ones; penalties shrink to `centre`; with `effects` the
    variance of bag effects is estimated too.
    """
    weights, effect = start, 0.0
    value = _objective(X, data, weights, effect, penalties, centre)
    for _ in range(n_steps):
        scores = data.scores(X @ weights)
        if effects:
            effect = data.effect(scores)
            value = _objective(X, data, weights, effect, penalties, centre)
        step = _scoring_step(X, data, scores, effect, penalties, penalties * (weights - centre))
        for size in (1.0, 0.5, 0.25, 0.06):
            tried = weights + size * step
            new = _objective(X, data, tried, effect, penalties, centre)
            if new < value:
                break
        else:
            break
        gain, weights, value = value - new, tried, new
        if gain < 1e-5 * len(data.sizes):
            break
    return LogitFit(weights, effect)


def _objective(
    X: Array, data: BagCounts, weights: Array, effect: float, penalties: Array, centre: Any
) -> float:
    loss = data.minus_log(data.scores(X @ weights), effect).sum()
    return float(loss + 0.5 * (penalties * (weights - centre) ** 2).sum())


def _scoring_step(
    X: Array, data: BagCounts, scores: Array, effect: float, penalties: Array, pull: Array
) -> Array:
    variance = data.variance(scores, effect)
    slopes = data.weighted_sum(data.slopes(scores), X)
    gaps = data.expected(scores, variance) - data.sum(scores)
    gradient = slopes.T @ (gaps / variance) - pull
    information = (slopes / variance[:, None]).T @ slopes
    information[np.diag_indices_from(information)] += penalties + 1e-9
    return np.asarray(np.linalg.solve(information, gradient))


def fold_slope(
    scores: Array, data: BagCounts, folds: Array, *, spread: float, effects: bool = False
) -> tuple[float, Array]:
    """Slope that calibrates out-of-fold logits, and the logits centred by fold.

    `spread` is the prior deviation of the slope from one. Each fold has an intercept of its own,
    because the means of held-out scores and held-out labels are negatively correlated.
    """
    logits = logit(np.clip(scores, SUREST, 1 - SUREST))
    member = np.repeat(np.eye(folds.max() + 1)[folds], data.sizes, axis=0)
    means = member.T @ logits / member.sum(axis=0)
    centred = logits - member @ means
    fitted = fit_logits(
        np.column_stack([centred, member]),
        data,
        np.r_[spread**-2, np.full(len(means), 1e-6)],
        start=np.r_[1.0, means],
        centre=np.r_[1.0, np.zeros(len(means))],
        effects=effects,
    )
    return float(fitted.weights[0]), centred


def shift_to_counts(logits: Array, data: BagCounts) -> float:
    """Shift of the logits for which the mean score equals the rate of the (expected) counts."""
    shift = shift_to_rate(logits, data.rate)
    for _ in range(0 if data.ranges is None else RANGE_STEPS):
        scores = expit(logits + shift)
        expected = data.expected(scores, data.variance(scores, 0.0)).sum() / len(logits)
        shift = shift_to_rate(logits, float(np.clip(expected, SUREST, 1 - SUREST)))
    return shift


def shift_to_rate(logits: Array, rate: float) -> float:
    """Shift of the logits for which the mean score is `rate`."""
    n = len(logits)
    return float(tilt_to_counts(logits, np.array([rate * n]), np.array([n]))[0])
