"""`BagBoostingClassifier`: gradient boosted trees from bags, grown by LightGBM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self, get_args

from numpy.typing import NDArray

from unbag.arguments import check_choice, check_whole
from unbag.bags import Bags, split_bags
from unbag.estimators.base import BagEstimator
from unbag.estimators.boosted_trees import BoostedTrees, Gradients
from unbag.estimators.gradients import BagGradients, CountGradients, scores_of_raw
from unbag.evaluation.risk import Loss
from unbag.randomness import draw_seed

Array = NDArray[Any]
BoostingRule = Literal["debiased_square", "count_likelihood"]


@dataclass(eq=False, repr=False)
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
    validation_share : float
        Share of the bags held out to choose the number of trees; 0 for none.
    patience : int, optional
        Stop after this many trees without a lower held-out risk.
    criterion : {"zero_one", "square"}
        Risk estimated on the held-out bags.
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
        Estimated risk after each round; empty without `validation_share`.
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
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); labels = X[:, 0] * X[:, 1] > 0
    >>> bags = np.repeat(np.arange(200), 10)
    >>> y = labels.reshape(200, 10).mean(axis=1)[bags]
    >>> clf = BagBoostingClassifier(random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.9)
    True
    """

    _: KW_ONLY
    rule: BoostingRule = "debiased_square"
    n_estimators: int = 400
    n_runs: int | None = None
    learning_rate: float = 0.1
    num_leaves: int = 8
    min_child_samples: int = 20
    reg_lambda: float | None = None
    extra_trees: bool = True
    validation_share: float = 0.0
    patience: int | None = None
    criterion: Loss = "square"
    categorical_features: Sequence[int] | None = None
    n_jobs: int = 1
    random_state: Any = None

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
