"""EM over bags: posteriors of labels by cross-fitted scores, models fitted to the posteriors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from unbag.arrays import Array
from unbag.bags import Bags, Task
from unbag.estimators.columns import scaled_columns, standardised
from unbag.estimators.count_regression import SUREST, BagCounts, fold_slope, shift_to_counts
from unbag.estimators.gaussian_process import BagGaussianProcessClassifier
from unbag.estimators.logistic_and_poisson import BagLogisticClassifier
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.estimators.soft_labels import SoftLearner, SoftModel, normalised
from unbag.posterior import bag_posterior

Start = Literal["rate", "linear", "ridge", "process"]
# Prior deviation of the slope of scores that were fitted to posteriors; slopes are kept within a
# factor of two of one. Scores fitted to the rates of bags are flatter by about the bag's size.
SLOPE_SPREAD, SLOPE_RANGE = 0.5, (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration of scores: each output's logit times a slope, plus a shift."""

    slopes: Array
    shifts: Array

    def __call__(self, scores: Array, task: Task) -> Array:
        """Calibrated scores of shape (n_instances, n_outputs)."""
        logits = logit(np.clip(scores, SUREST, 1 - SUREST))
        return normalised(expit(logits * self.slopes + self.shifts), task)


@dataclass(frozen=True, eq=False)
class EMRun:
    """Result of EM: the model fitted to all bags, and its calibration.

    `likelihood` is minus the mean log likelihood of out-of-fold counts after each round.
    """

    model: SoftModel
    calibration: Calibration
    likelihood: Array


@dataclass(frozen=True, eq=False)
class EMState:
    """Data and options of the rounds."""

    bags: Bags
    learner: SoftLearner
    folds: Array
    relaxation: float
    calibrate: bool
    bag_effects: bool
    seed: int

    @property
    def row_folds(self) -> Array:
        """Fold of each instance."""
        return np.repeat(self.folds, self.bags.sizes)

    @property
    def outputs(self) -> list[BagCounts]:
        """Counts of each output."""
        return BagCounts.of(self.bags)

    def out_of_fold(self, targets: Array) -> Array:
        """Scores of each row by a model fitted to the targets of the other folds."""
        found, row_folds = np.empty_like(targets), self.row_folds
        for fold in range(self.folds.max() + 1):
            rows, own = np.flatnonzero(row_folds != fold), row_folds == fold
            model = self.learner.fit(rows, targets[rows], seed=self.seed)
            found[own] = model.scores(self.bags.X[own])
        return found

    def shifts(self, logits: Array) -> Array:
        """Shifts for which the mean scores equal the known rates."""
        pairs = zip(logits.T, self.outputs, strict=True)
        return np.array([shift_to_counts(column, counts) for column, counts in pairs])

    def minus_log(self, scores: Array) -> float:
        """Minus the mean log likelihood of the counts."""
        each = [
            counts.minus_log(column, counts.effect(column) if self.bag_effects else 0.0).mean()
            for counts, column in zip(self.outputs, scores.T, strict=True)
        ]
        return float(np.sum(each))


def run_em(
    state: EMState,
    scores: Array,
    calibration: Calibration,
    trusted: Array,
    targets: Array | None,
    *,
    n_rounds: int,
) -> EMRun:
    """Run rounds of posterior and fit after what `started` gave."""
    likelihood = [state.minus_log(scores)]
    for _ in range(n_rounds):
        targets = relaxed_posterior(state, scores, trusted)
        scores, calibration, trusted = calibrated(state, state.out_of_fold(targets))
        likelihood.append(state.minus_log(scores))
    if targets is None or n_rounds:
        targets = relaxed_posterior(state, scores, trusted)
    model = state.learner.fit(np.arange(len(targets)), targets, seed=state.seed)
    if state.calibrate:
        logits = logit(np.clip(model.scores(state.bags.X), SUREST, 1 - SUREST))
        shifts = state.shifts(logits * calibration.slopes)
        calibration = replace(calibration, shifts=shifts)
    return EMRun(model, calibration, np.array(likelihood))


def started(state: EMState, start: Start) -> tuple[Array, Calibration, Array, Array | None]:
    """Result of `calibrated` for the first scores, and the targets they were fitted to, if any."""
    if start == "rate":
        values = state.bags.proportions.reshape(state.bags.n_bags, -1)
        rates = np.repeat(np.clip(values, 0, 1), state.bags.sizes, axis=0)
        return *calibrated(state, state.out_of_fold(rates), widest=True), rates
    centre, scale = scaled_columns(state.bags.X)
    X = standardised(state.bags.X, centre, scale)
    data, found = replace(state.bags, X=X), np.empty((len(X), state.bags.n_outputs))
    options: dict[str, Any] = {"bag_effects": state.bag_effects, "random_state": state.seed}
    model: Any = BagRidgeClassifier(standardise=False)
    if start == "linear":
        model = BagLogisticClassifier(**options).fit_bags(data)
        model.penalties = [model.penalty_]
    if start == "process":
        model = BagGaussianProcessClassifier(**options)
    for fold in range(state.folds.max() + 1):
        own, kept = state.row_folds == fold, data.take(np.flatnonzero(state.folds != fold))
        found[own] = model.fit_bags(kept)._scores(X[own]).reshape(own.sum(), -1)
    # Scores of the ridge are clipped ones: none of them is certain.
    found = np.clip(found, 0.02, 0.98) if start in ("ridge", "process") else found
    return *calibrated(state, found), None


def relaxed_posterior(state: EMState, scores: Array, trusted: Array) -> Array:
    r"""Targets of the next fit: :math:`p + \rho (q - p)`, clipped to [0, 1].

    For bags of size :math:`k` EM moves by a share of about :math:`1 / k` of the way per round; a
    larger :math:`\rho` moves further. Outputs with a slope below one are not relaxed, because their
    posteriors carry more information about bags than about instances.
    """
    flat = scores[:, 0] if state.bags.task == "binary" else scores
    posterior = bag_posterior(flat, state.bags).reshape(scores.shape)
    relaxation = np.where(trusted, state.relaxation, 1.0)
    targets = np.clip(scores + relaxation * (posterior - scores), 0, 1)
    return normalised(targets, state.bags.task)


def calibrated(
    state: EMState, scores: Array, *, widest: bool = False
) -> tuple[Array, Calibration, Array]:
    """Out-of-fold scores with slopes of largest likelihood, and whether each slope reaches one."""
    n_outputs = scores.shape[1]
    slopes, trusted = np.ones(n_outputs), np.ones(n_outputs, dtype=bool)
    if not state.calibrate:
        return scores, Calibration(slopes, np.zeros(n_outputs)), trusted
    low, high = (1.0, 10.0 * state.bags.sizes.max()) if widest else SLOPE_RANGE
    spread = 1e3 if widest else SLOPE_SPREAD
    logits = np.empty_like(scores)
    for i, counts in enumerate(state.outputs):
        slope, logits[:, i] = fold_slope(
            scores[:, i], counts, state.folds, spread=spread, effects=state.bag_effects
        )
        trusted[i] = slope > 0.9
        slopes[i] = np.clip(slope, low, high) if trusted[i] else 1.0
    shifts = state.shifts(logits * slopes)
    found = normalised(expit(logits * slopes + shifts), state.bags.task)
    return found, Calibration(slopes, shifts), trusted
