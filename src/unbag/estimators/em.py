"""`BagEMClassifier`: EM around any scikit-learn classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from unbag.arguments import check_choice, check_whole
from unbag.arrays import Array, Arrays
from unbag.bags import Bags
from unbag.bags.holdout import block_folds
from unbag.estimators.base import BlockEstimator
from unbag.estimators.em_rounds import Calibration, EMRun, EMState, Start, run_em, started
from unbag.estimators.instances import TABLES_WITH_GAPS
from unbag.estimators.soft_labels import LinearModel, model_of, soft_learner, tensors_of
from unbag.randomness import draw_seed

# With fewer bags what posteriors add to scores is mostly noise, and is not to be enlarged.
MANY_BAGS = 100


@dataclass(eq=False, repr=False)
class BagEMClassifier(BlockEstimator):
    r"""Any scikit-learn classifier, fitted to bags by expectation maximisation.

    The E-step gives each instance the probability of its label given the count of its bag,

    .. math:: q_j = P\Big(Y_j = 1 \Big| \sum_l Y_l = k a\Big)

    under scores :math:`p_j` of a fit without the bag. The M-step fits the classifier to
    :math:`p_j + \rho (q_j - p_j)` as weights of the labels.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Any classifier with `predict_proba`, including pipelines. If `fit` takes no `sample_weight`,
        labels are sampled. By default boosted trees: LightGBM if installed, otherwise
        `HistGradientBoostingClassifier`.
    n_rounds : int
        Rounds of E-step and M-step; 0 fits the start alone.
    start : {"auto", "rate", "linear", "ridge", "process"}
        Origin of the first scores. "rate": the classifier fitted to the rate of each row's bag.
        "linear": `BagLogisticClassifier`. "ridge": `BagRidgeClassifier`. "process":
        `BagGaussianProcessClassifier`. "auto": "rate" or "process", by the likelihood of held-out
        counts; of ranges of counts "rate" or "linear".
    cv : int
        Folds of whole bags.
    relaxation : float, optional
        The number :math:`\rho`; 1 is EM itself, which is slow for large bags. By default 3, and 1
        with `bag_effects` or fewer than a hundred bags.
    calibrate : bool
        Whether logits are scaled by the slope of largest likelihood. Scores fitted to rates need
        it: they are flatter than probabilities by about the size of the bags.
    bag_effects : bool
        Whether bags may have effects of their own, as natural groups have.
    max_leaf_nodes : int
        Leaves of each tree, if `estimator` is None. Few suit weak signals.
    n_runs : int
        Repetitions with other folds, whose probabilities are averaged.
    n_jobs : int
        Threads of LightGBM, if used.
    random_state : int, RandomState, Generator or None
        Seed of folds, default trees and sampled labels. An `estimator` has its own.

    Attributes
    ----------
    classes_ : array
        Class labels.
    runs_ : list of EMRun
        The fitted classifiers, ``runs_[0].model``, and the likelihood after each round.
    start_ : str
        The start that was used.

    Notes
    -----
    Posteriors of scores that have seen the bag confirm themselves; hence the folds. After the first
    round the scores of a fold depend on its bags through the posteriors of others, so estimate
    errors with `cross_fit_risk`, which repeats the whole procedure.

    With bags of one instance it is the classifier itself.

    Trees of LightGBM and logistic regressions can be saved; others have no format that can be read
    without executing it. The `estimator` of a loaded model is None, or `LogisticRegression()`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); labels = X[:, 0] > 0
    >>> bags = np.repeat(np.arange(100), 20)
    >>> y = labels.reshape(100, 20).mean(axis=1)[bags]
    >>> clf = BagEMClassifier(LogisticRegression(), random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.95)
    True
    """

    _checks = TABLES_WITH_GAPS
    _unsaved = ("estimator",)

    estimator: Any = None
    _: KW_ONLY
    n_rounds: int = 6
    start: Literal["auto", "rate", "linear", "ridge", "process"] = "auto"
    cv: int = 3
    relaxation: float | None = None
    calibrate: bool = True
    bag_effects: bool = False
    max_leaf_nodes: int = 15
    n_runs: int = 1
    n_jobs: int = 1
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A classifier that takes no gaps gets filled features from a stack.
        own = self.estimator
        no_tags = own is None or isinstance(own, str | type)  # `fit` refuses strings and classes
        tags.input_tags.allow_nan = no_tags or get_tags(own).input_tags.allow_nan
        return tags

    def _fit(self, data: Bags, blocks: Array | None = None) -> Self:
        check_choice("start", self.start, ("auto", *get_args(Start)))
        for name, least in (("n_rounds", 0), ("n_runs", 1), ("max_leaf_nodes", 2), ("cv", 2)):
            check_whole(name, getattr(self, name), least=least)
        data = data.gathered()
        learner = soft_learner(
            self.estimator,
            data.X,
            data.task,
            max_leaf_nodes=self.max_leaf_nodes,
            n_jobs=self.n_jobs,
        )
        seed = draw_seed(self.random_state)
        known = data.noise_variance is None and data.ranges is None
        if known and (data.sizes == 1).all():
            targets = data.proportions.reshape(data.n_bags, -1).astype(float)
            model = learner.fit(np.arange(data.n_bags), targets, seed=seed)
            none = Calibration(np.ones(data.n_outputs), np.zeros(data.n_outputs))
            self.start_, self.runs_ = "labels", [EMRun(model, none, np.empty(0))]
            return self
        self.runs_ = []
        # Of ranges of counts only the linear start can learn.
        second: Start = "process" if data.ranges is None else "linear"
        starts: tuple[Start, ...] = ("rate", second) if self.start == "auto" else (self.start,)
        for run in range(self.n_runs):
            state = EMState(
                data,
                learner,
                folds=block_folds(data.n_bags, self.cv, seed=seed + run, blocks=blocks),
                relaxation=self._relaxation(data.n_bags),
                calibrate=self.calibrate,
                bag_effects=self.bag_effects,
                seed=seed + run,
            )
            found = {start: started(state, start) for start in starts}
            self.start_ = min(found, key=lambda start: state.minus_log(found[start][0]))
            self.runs_.append(run_em(state, *found[self.start_], n_rounds=self.n_rounds))
            starts = (self.start_,)
        return self

    def _relaxation(self, n_bags: int) -> float:
        if self.relaxation is not None:
            return self.relaxation
        return 1.0 if self.bag_effects or n_bags < MANY_BAGS else 3.0

    def _scores(self, X: Array) -> Array:
        found = [run.calibration(run.model.scores(X), self.task_) for run in self.runs_]
        return self._by_task(np.mean(found, axis=0))

    def _learned(self) -> tuple[dict[str, Any], Arrays]:
        tensors: Arrays = {}
        for i, run in enumerate(self.runs_):
            tensors[f"slopes_{i}"] = np.array([run.calibration.slopes, run.calibration.shifts])
            tensors |= {f"{name}_{i}": part for name, part in tensors_of(run.model).items()}
        return {"start": self.start_, "n_runs_saved": len(self.runs_)}, tensors

    def _restore(self, description: dict[str, Any], tensors: Arrays, folder: Path) -> None:
        self.start_, self.runs_ = description["start"], []
        for i in range(description["n_runs_saved"]):
            own = {k.removesuffix(f"_{i}"): v for k, v in tensors.items() if k.endswith(f"_{i}")}
            fitted = model_of(own, self.task_, folder)
            self.runs_.append(EMRun(fitted, Calibration(*tensors[f"slopes_{i}"]), np.empty(0)))
            # What takes no gaps when fitted takes none when read back.
            self.estimator = LogisticRegression() if isinstance(fitted, LinearModel) else None
