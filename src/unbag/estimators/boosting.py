"""Gradient boosted trees from bags of labels and of amounts, grown by LightGBM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.special import xlogy

from unbag.arguments import check_choice
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.estimators.base import BagEstimator
from unbag.estimators.boosted_trees import BoostedTrees, Gradients
from unbag.estimators.gradients import BagGradients, CountGradients, EventGradients, scores_of_raw
from unbag.estimators.logistic_and_poisson import check_events
from unbag.estimators.regressor_base import BagRegressorBase
from unbag.evaluation.risk import estimate_risk, pairwise_value

BoostingRule = Literal["debiased_square", "count_likelihood"]


@dataclass(eq=False, repr=False, kw_only=True)
class BagBoostingClassifier(BagEstimator, BoostedTrees):
    """Boosted trees for single instances, learned from the average labels of bags.

    LightGBM grows the trees by the gradient of a loss over all bags, which couples the instances of
    a bag. Needs the extra ``unbag[gbm]``.

    Parameters
    ----------
    rule : {"debiased_square", "count_likelihood"}
        The loss, see Notes.
    n_estimators : int
        Boosting rounds, with one tree per output.
    n_runs : int, optional
        Number of boosted models with different random split points, whose raw scores are averaged.
        Averaging reduces overfitting to the chance composition of bags. By default 3 for the square
        loss and 1 for the likelihood, which gains little.
    learning_rate : float
        Factor of each tree.
    num_leaves : int
        Leaves of a tree.
    min_child_samples : int
        Minimum instances in a leaf.
    reg_lambda : float, optional
        L2 penalty on leaves, in units of the loss: the square loss is summed over instances, the
        likelihood over bags. By default 50 and 1: a proportion carries much less information about
        an instance than its label.
    extra_trees : bool
        Whether split points are random. Searched split points overfit the chance composition of
        bags.
    cv : int
        Folds of whole bags that choose the number of rounds by the square risk; 0 uses all.
    categorical_features : sequence of int, optional
        Columns of `X` with codes of categories, whole numbers from 0, which LightGBM splits by sets
        of values. Strings of a frame are encoded by `TableEncoder` instead.
    n_jobs : int
        Threads; -1 means one per core.
    random_state : int, RandomState, Generator or None
        Seed of split points and held-out bags; None draws one.

    Attributes
    ----------
    classes_ : array
        Class labels.
    booster_ : lightgbm.Booster
        Its raw scores exclude `initial_score_`.
    initial_score_ : array of shape (n_outputs,)
        Raw score before the first tree.
    n_trees_ : int
        Rounds used for predictions.
    held_out_risk_ : array of shape (n_rounds,)
        Cross-validated risk after each round; empty without folds.
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the total gain of splits.

    Notes
    -----
    "debiased_square" is an unbiased estimate of the instance square loss, for bags that are random
    groups of i.i.d. instances. Proportions need not be counts.

    "count_likelihood" is the likelihood of the bags' counts. It assumes labels that are independent
    given the features, and holds for any grouping. It uses all the information of a count, so it
    learns more from small bags. Twice the default number of rounds is often better.

    References
    ----------
    li2024optimistic

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); labels = X[:, 0] * X[:, 1] > 0
    >>> bags = np.repeat(np.arange(200), 10)
    >>> y = labels.reshape(200, 10).mean(axis=1)[bags]
    >>> clf = BagBoostingClassifier(random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.9)
    True
    """

    rule: BoostingRule = "debiased_square"
    min_child_samples: int = 20
    extra_trees: bool = True
    categorical_features: Sequence[int] | None = None

    def _fit(self, data: Bags) -> Self:
        return self._fit_trees(data)

    def _gradients(self, data: Bags) -> Gradients:
        if self.rule == "debiased_square":
            return BagGradients(data, learning_rate=self.learning_rate)
        if self.rule == "count_likelihood":
            return CountGradients(data, learning_rate=self.learning_rate)
        raise ValueError(
            f"rule must be 'debiased_square' or 'count_likelihood', got {self.rule!r}. "
            "BagClassifier takes the others."
        )

    def _risk(self, scores: Array, bags: Bags) -> float:
        return estimate_risk(scores, bags, loss="square").value

    def _probabilities(self, raw: Array) -> Array:
        return self._by_task(scores_of_raw(self._by_run(raw).mean(axis=1), self.task_))


@dataclass(eq=False, repr=False, kw_only=True)
class BagBoostingRegressor(BagRegressorBase, BoostedTrees):
    """Boosted trees for single amounts, learned from the averages of bags.

    LightGBM grows the trees, see `BagBoostingClassifier`. Needs ``unbag[gbm]``.

    Parameters
    ----------
    loss : {"squared_error", "poisson"}
        See Notes.
    n_estimators : int
        Maximum number of rounds.
    cv : int
        Folds of whole bags that choose the number of rounds; 0 uses all.
    n_runs, learning_rate, num_leaves, reg_lambda, n_jobs, random_state
        As for `BagBoostingClassifier`. By default 3 runs and a penalty of 50, or 1 for "poisson".

    Attributes
    ----------
    booster_ : lightgbm.Booster
        Its raw scores exclude `initial_score_`.
    n_trees_ : int
        Rounds used for predictions.
    held_out_risk_ : array of shape (n_estimators,)
        Cross-validated risk after each round; empty without folds.
    initial_score_ : array of shape (1,)
        The mean amount; its logarithm for "poisson".

    Notes
    -----
    For random bags "squared_error" is an unbiased estimate of the squared error of single amounts.
    "poisson" is the likelihood of numbers of events, as for `BagPoissonRegressor`. It holds for any
    grouping in which events are independent given the features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); amounts = 10 * (X[:, 0] * X[:, 1] > 0)
    >>> bags = np.repeat(np.arange(200), 10)
    >>> y = amounts.reshape(200, 10).mean(axis=1)[bags]
    >>> model = BagBoostingRegressor(random_state=0).fit(X, y, bags=bags)
    >>> bool(model.score(X, amounts) > 0.5)
    True
    """

    loss: Literal["squared_error", "poisson"] = "squared_error"
    cv: int = 3
    n_runs: int = 3

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _fit_amounts(self, data: Bags) -> None:
        check_choice("loss", self.loss, ("squared_error", "poisson"))
        if self.loss == "poisson":
            check_events(data)
        self._fit_trees(data)

    def _risk(self, scores: Array, bags: Bags) -> float:
        if self.loss == "poisson":
            events, means = bags.totals * bags.proportions, bags.totals * bags.mean(scores)
            return float((means - xlogy(events, means)).mean())
        residuals = bags.mean(scores) - bags.proportions
        return float(pairwise_value(residuals, bags.effective_sizes))

    def _initial_score(self, data: Bags) -> Array:
        start = super()._initial_score(data)
        fewest = 0.5 / data.totals.sum()  # events, of which there may be none
        return np.log(np.maximum(start, fewest)) if self.loss == "poisson" else start

    def _gradients(self, data: Bags) -> Gradients:
        if self.loss == "poisson":
            return EventGradients(data, learning_rate=self.learning_rate)
        return BagGradients(data, learning_rate=self.learning_rate)

    def _probabilities(self, raw: Array) -> Array:
        found: Array = self._by_run(raw).mean(axis=1)[:, 0]
        return np.exp(found) if self.loss == "poisson" else found
