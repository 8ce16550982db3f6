"""`BagBoostingRegressor`: boosted trees of single amounts from averages of bags."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.base import clone

from unbag.arguments import check_choice
from unbag.bags import Bags
from unbag.estimators.boosted_trees import BoostedTrees, Gradients
from unbag.estimators.folds import fold_numbers
from unbag.estimators.gradients import BagGradients, EventGradients
from unbag.estimators.logistic_and_poisson import check_events
from unbag.estimators.regressor_base import BagRegressorBase
from unbag.evaluation.risk import pairwise_value
from unbag.randomness import draw_seed

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
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
    n_runs : int
        Number of boosted models that are averaged.
    learning_rate : float
        Factor of each tree.
    num_leaves : int
        Leaves of a tree.
    reg_lambda : float, optional
        L2 penalty on leaves. By default 50, or 1 for "poisson".
    n_jobs : int
        Threads; -1 means one per core.
    random_state : int, RandomState, Generator or None
        Seed of split points.

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
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); amounts = 10 * (X[:, 0] * X[:, 1] > 0)
    >>> bags = np.repeat(np.arange(200), 10)
    >>> y = amounts.reshape(200, 10).mean(axis=1)[bags]
    >>> model = BagBoostingRegressor(random_state=0).fit(X, y, bags=bags)
    >>> bool(model.score(X, amounts) > 0.5)
    True
    """

    patience, criterion, min_child_samples, extra_trees = None, "square", 20, True

    _: KW_ONLY
    loss: Literal["squared_error", "poisson"] = "squared_error"
    n_estimators: int = 400
    cv: int = 3
    n_runs: int = 3
    learning_rate: float = 0.1
    num_leaves: int = 8
    reg_lambda: float | None = None
    n_jobs: int = 1
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _fit_amounts(self, data: Bags) -> None:
        check_choice("loss", self.loss, ("squared_error", "poisson"))
        if self.loss == "poisson":
            check_events(data)
        risks = self._left_out_risks(data)
        self._train(data, None)
        if len(risks):
            self.n_trees_ = min(int(risks.argmin()) + 1, self.n_trees_)
        self.held_out_risk_ = risks

    def _left_out_risks(self, data: Bags) -> Array:
        """Cross-validated risk after each round; empty for too few bags."""
        n_folds = min(self.cv, data.n_bags // 2)
        if n_folds < 2:
            return np.empty(0)
        folds = fold_numbers(data.n_bags, n_folds, seed=draw_seed(self.random_state))
        risks = []
        for fold in range(n_folds):
            kept, left = (data.take(np.flatnonzero(own)) for own in (folds != fold, folds == fold))
            model = clone(self).set_params(n_runs=1)
            risks.append(model._train(kept, left).held_out_risk_)
        return np.asarray(np.mean(risks, axis=0))

    def _risk(self, scores: Array, bags: Bags) -> float:
        if self.loss == "poisson":
            events, means = bags.totals * bags.proportions, bags.totals * bags.mean(scores)
            return float((means - xlogy(events, means)).mean())
        residuals = bags.mean(scores) - bags.proportions
        return float(pairwise_value(residuals, bags.effective_sizes))

    def _initial_score(self, data: Bags) -> Array:
        start = super()._initial_score(data)
        return np.log(start) if self.loss == "poisson" else start

    def _gradients(self, data: Bags) -> Gradients:
        if self.loss == "poisson":
            return EventGradients(data, learning_rate=self.learning_rate)
        return BagGradients(data)

    def _probabilities(self, raw: Array) -> Array:
        found: Array = self._by_run(raw).mean(axis=1)[:, 0]
        return np.exp(found) if self.loss == "poisson" else found

    def _amounts(self, X: Array) -> Array:
        return self._probabilities(self._raw(X))
