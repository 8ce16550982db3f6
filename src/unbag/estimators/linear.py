"""Base classes of the linear models: ridge, and regression by the likelihood of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.holdout import block_folds
from unbag.estimators.closed_form import (
    CHUNK,
    BagStatistics,
    RidgeSolution,
    check_reports,
    check_sizes,
    joint_statistics,
)
from unbag.estimators.columns import filled, scaled_columns, standardised
from unbag.estimators.count_regression import BagCounts, LogitFit, fit_logits
from unbag.estimators.instances import TABLES_WITH_GAPS, InstanceEstimator
from unbag.randomness import draw_seed


def penalty_grid(penalties: Sequence[float] | None, default: Array) -> Array:
    """The penalties to choose from, or the default."""
    grid = default if penalties is None else np.asarray(penalties)
    if grid.ndim != 1 or len(grid) == 0 or not (np.isfinite(grid) & (grid >= 0)).all():
        raise ValueError(
            f"penalties must be a sequence of non-negative numbers, got {penalties!r}."
        )
    return grid


class LinearEstimator(InstanceEstimator):
    """Weights and intercept of linear scores, flat for a single output."""

    def _set_weights(self, coefficients: Array, intercept: Array) -> None:
        single = self.task_ in ("binary", "amount")
        self.coef_ = coefficients[:, 0] if single else coefficients
        self.intercept_ = float(intercept[0]) if single else intercept


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeModel(LinearEstimator):
    """Linear scores fitted to bag means, with the penalty chosen by leave-one-bag-out."""

    _state: ClassVar[tuple[str, ...]] = ("coef", "intercept", "penalty", "leave_one_out")
    n_components = None  # type: Any

    penalties: Sequence[float] | None = None
    standardise: bool | None = None

    def fit_bags(self, data: Bags | Sequence[Bags]) -> Self:
        """Fit to a `Bags`, or to several reports about the same rows with overlapping bags.

        Parameters
        ----------
        data : Bags, or sequence of Bags with one `X`
            A row may be in one bag of each report. Generalised least squares accounts for the
            correlation of averages that share rows. Reports that contradict each other need a noise
            variance. Thousands of bags take some seconds.
        """
        if isinstance(data, Bags):
            return super().fit_bags(data)
        self._refuse_components("several reports")
        first = check_reports(data)
        self._adopt(first.task, first.n_outputs, first.X.shape[1])
        return self._fit_statistics(joint_statistics(data))

    def _refuse_components(self, method: str) -> None:
        if self.n_components is not None:
            raise ValueError(
                f"n_components must be None for {method}, got {self.n_components!r}. Use fit, or "
                "transform the features first."
            )

    def _fit_statistics(self, statistics: BagStatistics) -> Self:
        self._statistics = statistics
        self.leave_one_out_, self.penalty_, *weights = self._best(statistics)
        self._set_weights(*weights)
        return self

    def _best(self, statistics: BagStatistics) -> tuple[Array, float, Array, Array]:
        """Error of each penalty, and the best penalty with its weights and intercept."""
        check_sizes(statistics.means)
        grid = penalty_grid(self.penalties, np.logspace(-6, 4, 60))
        # Features in common units are better left alone, features in units of their own are not. An
        # error from n bags has a relative standard error of sqrt(2/n); less than that is chance.
        found = []
        for standardise in (False, True) if self.standardise is None else (self.standardise,):
            solution = RidgeSolution(statistics, standardise=standardise)
            found.append((np.array([solution.leave_one_out(p) for p in grid]), solution))
        errors, solution = found[0]
        chance = np.sqrt(2 / len(statistics.sizes)) * abs(errors.min())
        if found[-1][0].min() < errors.min() - chance:
            errors, solution = found[-1]
        penalty = float(grid[errors.argmin()])
        return errors, penalty, *solution.coefficients(penalty)

    def _linear(self, X: Array) -> Array:
        """Linear scores in chunks of rows that stay in the cache as doubles."""
        products = [X[i : i + CHUNK] @ self.coef_ for i in range(0, len(X), CHUNK)]
        return np.concatenate(products) + self.intercept_


@dataclass(eq=False, repr=False, kw_only=True)
class LikelihoodModel(LinearEstimator):
    """Linear predictors by the likelihood of counts, with a cross-validated penalty."""

    _state = ("coef", "intercept", "penalty", "effect_variance", "fill_values")
    _checks = TABLES_WITH_GAPS
    bag_effects = False

    penalties: Sequence[float] | None = None
    cv: int = 4
    random_state: Any = None

    def _fit_counts(self, data: Bags, outputs: Sequence[BagCounts]) -> Self:
        grid = np.sort(penalty_grid(self.penalties, np.geomspace(0.3, 3e4, 10)))[::-1]
        X = np.asarray(data.X, dtype=float)[data.rows]
        centre, scale = scaled_columns(X)
        X = np.column_stack([standardised(X, centre, scale), np.ones(len(X))])
        self.penalty_ = self._best(X, outputs, grid) if len(grid) > 1 else float(grid[0])
        fits = [_path(X, counts, [self.penalty_], self.bag_effects)[0] for counts in outputs]
        weights = np.stack([fit.weights for fit in fits], axis=1)
        coefficients = weights[:-1] / scale[:, None]
        self._set_weights(coefficients, weights[-1] - centre @ coefficients)
        self.effect_variance_ = np.array([fit.effect for fit in fits])
        self.fill_values_ = centre
        return self

    def _best(self, X: Array, outputs: Sequence[BagCounts], grid: Array) -> float:
        """Penalty with the largest likelihood of held-out bags."""
        sizes = outputs[0].sizes
        folds = block_folds(len(sizes), self.cv, seed=draw_seed(self.random_state), blocks=None)
        losses, row_folds = np.zeros(len(grid)), np.repeat(folds, sizes)
        for fold in range(folds.max() + 1 if len(sizes) > 2 else 0):
            own, kept = row_folds == fold, np.flatnonzero(folds != fold)
            for counts in outputs:
                held_out = counts.take(np.flatnonzero(folds == fold))
                for i, fit in enumerate(_path(X[~own], counts.take(kept), grid, self.bag_effects)):
                    scores = held_out.scores(X[own] @ fit.weights)
                    losses[i] += held_out.minus_log(scores, fit.effect).sum()
        return float(grid[losses.argmin()])

    def _linear(self, X: Array) -> Array:
        return filled(np.asarray(X, dtype=float), self.fill_values_) @ self.coef_ + self.intercept_


def _path(X: Array, counts: BagCounts, penalties: Any, effects: bool) -> list[LogitFit]:
    """Fits for decreasing penalties, each started from the previous one."""
    weights, found = np.zeros(X.shape[1]), []
    weights[-1] = counts.start
    for penalty in penalties:
        each = np.r_[np.full(X.shape[1] - 1, penalty), 1e-8]
        found.append(fit_logits(X, counts, each, start=weights, effects=effects))
        weights = found[-1].weights
    return found
