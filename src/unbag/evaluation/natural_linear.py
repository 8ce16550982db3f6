"""Bias-aware linear estimation: sums over rows from rates of bags, under bounded departures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.errors import BagDataError

PENALTIES = 4.0 ** np.arange(-8, 9)  # of departures, whose bound is one
ROUNDS = 3
N_KNOTS = 21


def check_reach(name: str, value: Any, other: str = "") -> None:
    """Raise unless a bound of departures is a number of at least zero."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not (number and 0 <= value < np.inf):
        wanted = f"a number of at least 0, such as 0.3{other and f', {other}'}"
        raise BagDataError(f"{name} must be {wanted}, got {value!r}.")


def folded_quantile(bias: float, confidence: float) -> float:
    """Quantile of ``|Z + bias|`` for a standard normal Z."""
    if bias > 10:  # one tail: the other holds less than 1e-22
        return float(bias + stats.norm.ppf(confidence))
    return float(np.sqrt(stats.ncx2.ppf(confidence, 1, bias**2)))


@dataclass(frozen=True)
class BoundedModel:
    r"""Probabilities of rows that are known up to free and to bounded departures (D29).

    .. math:: P(y_r = 1) = p_r + \sum_k \gamma_k F_{rk} + \sum_k \delta_k Z_{rk}
              + \sum_k u_{ik} E_{rk}, \qquad |\delta_k| \le 1

    for a row :math:`r` of bag :math:`i`. The effects :math:`u` of bags are independent and have
    mean zero whatever the features.

    Rows that are alike are one cell; cells come bag by bag.

    References
    ----------
    armstrong2018optimal, armstrong2020bias, goldberger1962best
    """

    rates: Array  # of bags
    sizes: Array
    bag: Array  # of each cell
    count: Array  # of each cell's rows
    guess: Array  # p of each cell
    free: Array  # F, (n_cells, ...)
    bounded: Array  # Z
    effects: Array  # E
    units: Array | None = None  # block of each bag; bags of one block may share an effect

    def interval(self, weights: Array, confidence: float) -> tuple[float, float, float]:
        r"""Estimate of :math:`\sum_r w_r y_r` and the ends of its interval; a weight per cell.

        Of ridge estimates, which are linear in the rates, the one with the shortest interval. Its
        length allows for the largest bias over all bounded departures.
        """
        target = (self.count * weights) @ self._terms
        found = [self._estimate(weights, target, penalty, confidence) for penalty in PENALTIES]
        reach, value = min(found)
        return value, value - reach, value + reach

    def _estimate(
        self, weights: Array, target: Array, penalty: float, confidence: float
    ) -> tuple[float, float]:
        """Half the interval's length, and its middle."""
        known = self._known(weights)
        by_bag = known + (target - known @ self._design) @ self._solver(penalty, self._fit[0])
        value = float(self.count * weights @ self.guess + by_bag @ self._gaps)
        bias = np.abs(by_bag @ self._design - target)[self.free.shape[1] :].sum()
        # Student's law, since several variances are estimated from the same squares.
        freedom = max((len(self.sizes) - self._used) / self.effects.shape[1], 2)
        level = (1 + confidence) / 2
        error = np.sqrt(self._variance((by_bag / self.sizes)[self.bag] - weights))
        error *= stats.t.ppf(level, freedom) / stats.norm.ppf(level)
        return error * folded_quantile(bias / max(error, 1e-12), confidence), value

    def _known(self, weights: Array) -> Array:
        """Regression of the sum's own chance departure on that of each rate (Goldberger)."""
        variance, of_row, of_effects, _ = self._fit
        effects = self._by_bag((weights * self.effects.T).T) * self._mean(self.effects)
        rows = self._by_bag(weights * of_row) / self.sizes
        return np.asarray((rows + effects @ of_effects) / variance)

    def _variance(self, off: Array) -> float:
        """Variance of the sum over all rows of y times what the estimate is off in its weight."""
        _, of_row, of_effects, of_blocks = self._fit
        moved = self._by_bag((off * self.effects.T).T)
        blocks = 0.0 if self.units is None else np.bincount(self.units, self._by_bag(off)) ** 2
        rows = self.count * off**2 @ of_row
        return float(rows + (moved**2).sum(axis=0) @ of_effects + of_blocks * np.sum(blocks))

    def _by_bag(self, values: Array) -> Array:
        """Sum over the rows of each bag."""
        return np.asarray(np.add.reduceat((self.count * values.T).T, self._starts))

    def _mean(self, values: Array) -> Array:
        return (self._by_bag(values).T / self.sizes).T

    @cached_property
    def _starts(self) -> Array:
        return np.searchsorted(self.bag, np.arange(len(self.sizes)))

    @cached_property
    def _terms(self) -> Array:
        return np.hstack([self.free, self.bounded])

    @cached_property
    def _design(self) -> Array:
        return self._mean(self._terms)

    @cached_property
    def _gaps(self) -> Array:
        return np.asarray(self.rates - self._mean(self.guess))

    def _solver(self, penalty: float, variance: Array) -> Array:
        """Coefficients by gaps: ridge regression that leaves the free coefficients alone."""
        weighed = self._design.T / variance
        penalties = np.repeat([1e-9, penalty], [self.free.shape[1], self.bounded.shape[1]])
        return np.asarray(np.linalg.solve(weighed @ self._design + np.diag(penalties), weighed))

    @cached_property
    def _used(self) -> float:
        """Degrees of freedom that the fit takes: penalised coefficients take a part of one each."""
        variance = self._fit[0]
        return float((self._design * self._solver(1.0, variance).T).sum())

    @cached_property
    def _fit(self) -> tuple[Array, Array, Array, float]:
        """Variances: of each rate, of a row of each cell, of each effect, of effects of blocks."""
        variance = np.full(len(self.sizes), np.mean(self._gaps**2) + 1e-9)
        loads = self._mean(self.effects) ** 2
        for _ in range(ROUNDS):
            solver = self._solver(1.0, variance)
            leverage = (self._design * solver.T).sum(axis=1)
            left = self._gaps - self._design @ (solver @ self._gaps)
            left /= np.sqrt(np.clip(1 - leverage, 0.2, 1))
            chance = np.clip(self.guess + self._terms @ (solver @ self._gaps), 0.02, 0.98)
            of_row = chance * (1 - chance)
            sampling = self._mean(of_row) / self.sizes
            of_effects, _ = optimize.nnls(
                loads / variance[:, None], (left**2 - sampling) / variance
            )
            variance = sampling + loads @ of_effects
        # D29. Rates do not show how probabilities differ within a bag, so the worst case is used.
        unseen = np.abs(self.bounded - self._mean(self.bounded)[self.bag]).sum(axis=1)
        of_row = 0.25 - np.maximum(np.abs(chance - 0.5) - unseen, 0) ** 2
        variance = self._mean(of_row) / self.sizes + loads @ of_effects
        return variance, of_row, of_effects, self._block_variance(left)

    def _block_variance(self, left: Array) -> float:
        """Mean product of the residuals of two bags of one block."""
        if self.units is None:
            return 0.0
        squares = np.bincount(self.units, left) ** 2 - np.bincount(self.units, left**2)
        n_bags = np.bincount(self.units)
        return max(float(squares.sum() / max((n_bags * (n_bags - 1)).sum(), 1)), 0.0)


def smooth_model(scores: Array, bags: Bags, smoothness: float, units: Any = None) -> BoundedModel:
    r"""Chances of rows, whose scores come bag by bag, up to a smooth departure from them (D30).

    .. math:: P(y_{ij} = 1) = f_{ij} + g(f_{ij}) + c \, \bar f_i + u_i, \qquad
              |g(f) - g(f')| \le L |f - f'|, \quad |c| \le L
    """
    bag = np.repeat(np.arange(bags.n_bags), bags.sizes)
    knots = np.linspace(scores.min(), scores.max() + 1e-9, N_KNOTS)
    parts = np.clip(scores[:, None] - knots[:-1], 0, np.diff(knots))
    means = np.add.reduceat(scores, bags.starts) / bags.sizes
    one = np.ones((len(scores), 1))
    bounded = smoothness * np.column_stack([parts, means[bag] - scores.mean()])
    counts = np.rint(bags.proportions * bags.sizes)
    return BoundedModel(
        counts / bags.sizes, bags.sizes, bag, one[:, 0], scores, one, bounded, one, units
    )


def metric_positions(
    scores: Array,
    bags: Bags,
    extremes: tuple[Array, Array],
    *,
    smoothness: float,
    units: Any,
    confidence: float,
) -> dict[str, Array]:
    """Where metrics lie between those of the least and the best suiting labels: value and ends.

    Since the number of positives is known, each metric is linear in one sum over the positives: of
    hard predictions, scores, their logits or their ranks (D24). NaN if the counts contradict the
    smoothness: no labels with these counts lie within the interval.
    """
    certain = np.clip(scores, 1e-15, 1 - 1e-15)
    sums = {
        "": scores > 0.5,
        "brier": scores,
        "log_loss": special.logit(certain),
        "auc": stats.rankdata(scores),
    }
    model = smooth_model(scores, bags, smoothness, units)
    found = {}
    for name, values in sums.items():
        weights = values / len(scores)
        worst, best = (weights @ labels for labels in extremes)
        ends = np.array(model.interval(weights, confidence))
        places = (ends - worst) / max(best - worst, 1e-12)
        slack = 1e-9 * np.abs(weights).sum()
        contradicted = ends[1] > best + slack or ends[2] < worst - slack
        found[name] = np.full(3, np.nan) if contradicted else np.clip(places, 0, 1)
    return found
