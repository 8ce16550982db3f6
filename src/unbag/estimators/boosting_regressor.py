"""`BagBoostingRegressor`: boosted trees of single amounts from averages of bags."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.estimators.bag_gradients import BagGradients
from unbag.estimators.boosted_trees import BoostedTrees
from unbag.estimators.regressor_base import BagRegressorBase
from unbag.evaluation.risk import Loss

__all__ = ["BagBoostingRegressor"]

Array = NDArray[Any]


class BagBoostingRegressor(BagRegressorBase, BoostedTrees):
    """Boosted trees for single amounts, learned from the averages of bags.

    LightGBM grows the trees, see `BagBoostingClassifier`. For bags that are random groups the loss
    is an unbiased estimate of the squared error of single amounts. Needs ``unbag[gbm]``.

    Parameters
    ----------
    n_estimators : int
        Rounds of one tree.
    n_runs : int
        Boosted models grown side by side and averaged.
    learning_rate : float
        What a tree is multiplied by.
    num_leaves : int
        Leaves of a tree.
    reg_lambda : float, optional
        Penalty on the squares of the leaves, in instances. None takes 50.
    n_jobs : int
        Threads; -1 takes as many as there are cores.
    random_state : int, RandomState, Generator or None
        Seed of split points.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        Its raw scores lack `initial_score_`.
    initial_score_ : array of shape (1,)
        The mean amount.

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

    patience: int | None = None
    criterion: Loss = "square"
    min_child_samples: int = 20
    extra_trees: bool = True

    def __init__(
        self,
        *,
        n_estimators: int = 400,
        n_runs: int = 3,
        learning_rate: float = 0.1,
        num_leaves: int = 8,
        reg_lambda: float | None = None,
        n_jobs: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.n_runs = n_runs
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.reg_lambda = reg_lambda
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit_amounts(self, data: Bags) -> None:
        self._train(data, None)

    def _gradients(self, data: Bags) -> BagGradients:
        return BagGradients(data)

    def _probabilities(self, raw: Array) -> Array:
        found: Array = self._by_run(raw).mean(axis=1)[:, 0]
        return found

    def _amounts(self, X: Array) -> Array:
        return self._probabilities(self._raw(X))
