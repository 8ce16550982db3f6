"""`BagBoostingClassifier`: gradient boosted trees from bags, grown by LightGBM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self, get_args

from numpy.typing import NDArray

from unbag.arguments import check_choice, check_whole
from unbag.bags import Bags, split_bags
from unbag.estimators.bag_gradients import BagGradients, scores_of_raw
from unbag.estimators.base import BagEstimator
from unbag.estimators.boosted_trees import BoostedTrees, Gradients
from unbag.estimators.count_gradients import CountGradients
from unbag.evaluation.risk import Loss
from unbag.randomness import draw_seed

__all__ = ["BagBoostingClassifier", "BoostingRule"]

Array = NDArray[Any]
BoostingRule = Literal["debiased_square", "count_likelihood"]


class BagBoostingClassifier(BagEstimator, BoostedTrees):
    """Boosted trees for single instances, learned from the average labels of bags.

    LightGBM grows the trees; the gradient is that of a loss over all bags, which couples the
    instances of a bag. Needs the extra ``unbag[gbm]``.

    Parameters
    ----------
    rule : {"debiased_square", "count_likelihood"}
        The loss: see the notes.
    n_estimators : int
        Rounds of one tree, or of one tree a class.
    n_runs : int, optional
        Boosted models grown side by side, whose raw scores are averaged. They differ in the split
        points that are drawn; what each makes of the chance composition of the bags averages out.
        None takes 3 for the square loss and 1 for the likelihood, which gains little by more.
    learning_rate : float
        What a tree is multiplied by.
    num_leaves : int
        Leaves of a tree.
    min_child_samples : int
        Fewest instances in a leaf.
    reg_lambda : float, optional
        Penalty on the squares of the leaves, in the units of the loss: the square loss is summed
        over instances, the likelihood over bags. None takes 50 for the one and 1 for the other. A
        proportion says much less about an instance than its label: hence the 50.
    extra_trees : bool
        Whether split points are drawn at random instead of searched: trees that search find the
        chance composition of the bags.
    validation_share : float
        Share of the bags that are held out to choose the number of trees; 0 keeps them all.
    patience : int, optional
        Trees without a better held-out risk before growing stops.
    criterion : {"zero_one", "square"}
        Which risk is estimated on the held-out bags.
    categorical_features : sequence of int, optional
        Columns of `X` that hold codes of categories, whole numbers from 0: LightGBM splits them by
        sets of values. Strings of a frame are encoded by `TableEncoder` instead.
    n_jobs : int
        Threads; -1 takes as many as there are cores.
    random_state : int, RandomState, Generator or None
        Seed of split points and bags held out; None draws one.

    Attributes
    ----------
    classes_ : array
        Labels that `predict` gives.
    booster_ : lightgbm.Booster
        Its raw scores lack `initial_score_`.
    initial_score_ : array of shape (n_outputs,)
        Raw score of an instance before the first tree.
    n_trees_ : int
        Rounds that are used for predictions.
    held_out_risk_ : array of shape (n_rounds,)
        Estimated risk after each round; empty without `validation_share`.
    feature_importances_ : array of shape (n_features,)
        Share of each feature in what splits gain.

    Notes
    -----
    "debiased_square" is an unbiased estimate of the instance square loss of any scores, for bags
    that are random groups of i.i.d. instances. Proportions need not be counts.

    "count_likelihood" is maximum likelihood of the bags' counts, for labels that are independent
    given the features, however bags were grouped; no instance loss is estimated on the way. It uses
    all that a count says, so it learns more from the same small bags. Twice the default number of
    rounds is often better.

    References
    ----------
    li2024optimistic

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); labels = X[:, 0] * X[:, 1] > 0
    >>> bags = np.repeat(np.arange(200), 10)
    >>> y = labels.reshape(200, 10).mean(axis=1)[bags]
    >>> clf = BagBoostingClassifier(random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.9)
    True
    """

    def __init__(
        self,
        *,
        rule: BoostingRule = "debiased_square",
        n_estimators: int = 400,
        n_runs: int | None = None,
        learning_rate: float = 0.1,
        num_leaves: int = 8,
        min_child_samples: int = 20,
        reg_lambda: float | None = None,
        extra_trees: bool = True,
        validation_share: float = 0.0,
        patience: int | None = None,
        criterion: Loss = "square",
        categorical_features: Sequence[int] | None = None,
        n_jobs: int = 1,
        random_state: Any = None,
    ) -> None:
        self.rule = rule
        self.n_estimators = n_estimators
        self.n_runs = n_runs
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.reg_lambda = reg_lambda
        self.extra_trees = extra_trees
        self.validation_share = validation_share
        self.patience = patience
        self.criterion = criterion
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, data: Bags) -> Self:
        check_choice("criterion", self.criterion, get_args(Loss))
        check_whole("patience", self.patience, optional=True)
        if self.validation_share:
            seed = draw_seed(self.random_state)
            return self._train(*split_bags(data, share=self.validation_share, seed=seed))
        if self.patience is not None:
            raise ValueError("patience needs held-out bags: set validation_share, such as 0.2.")
        return self._train(data, None)

    def _gradients(self, data: Bags) -> Gradients:
        if self.rule == "debiased_square":
            return BagGradients(data)
        if self.rule == "count_likelihood":
            return CountGradients(data, learning_rate=self.learning_rate)
        raise ValueError(
            f"rule must be 'debiased_square' or 'count_likelihood', got {self.rule!r}. "
            "BagClassifier takes the others."
        )

    def _probabilities(self, raw: Array) -> Array:
        return self._by_task(scores_of_raw(self._by_run(raw).mean(axis=1), self.task_))

    def _scores(self, X: Array) -> Array:
        return self._probabilities(self._raw(X))

    def _decisions(self, X: Array) -> Array:
        return self._by_task(self._by_run(self._raw(X)).mean(axis=1))
