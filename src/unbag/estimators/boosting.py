"""`BagBoostingClassifier`: gradient boosted trees from bags, grown by LightGBM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags, split_bags
from unbag.errors import BagDataError
from unbag.estimators.bag_gradients import BagGradients, initial_scores, scores_of_raw
from unbag.estimators.base import BagEstimator
from unbag.estimators.classifier import draw_seed
from unbag.estimators.saving import ModelFolderError, read_folder, write_folder
from unbag.evaluation.risk import Loss, estimate_risk
from unbag.extras import import_extra

__all__ = ["BagBoostingClassifier"]

Array = NDArray[Any]


class BagBoostingClassifier(BagEstimator):
    """Boosted trees for single instances, learned from the average labels of bags.

    LightGBM grows the trees; the gradient is that of the debiased square loss over all bags, which
    couples the instances of a bag. Needs the extra ``unbag[gbm]``.

    Parameters
    ----------
    n_estimators : int
        Trees, or rounds of one tree a class.
    learning_rate : float
    num_leaves : int
        Leaves of a tree.
    min_child_samples : int
        Fewest instances in a leaf.
    reg_lambda : float
        Penalty on the squares of the leaves, in the loss summed over instances. A proportion says
        much less about an instance than its label, so this is larger than is usual for labels.
    extra_trees : bool
        Whether split points are drawn at random instead of searched: trees that search find the
        chance composition of the bags.
    validation_share : float
        Share of the bags that are held out to choose the number of trees; 0 keeps them all.
    patience : int, optional
        Trees without a better held-out risk before growing stops.
    criterion : {"zero_one", "square"}
        Which risk is estimated on the held-out bags.
    n_jobs : int
        Threads; -1 takes as many as there are cores.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array
    booster_ : lightgbm.Booster
        Its raw scores lack `initial_score_`.
    initial_score_ : array of shape (n_outputs,)
        Raw score of an instance before the first tree.
    n_trees_ : int
        Rounds that are used for predictions.
    held_out_risk_ : array of shape (n_rounds,)
        Estimated risk after each round; empty without `validation_share`.

    Notes
    -----
    The training loss is an unbiased estimate of the instance square loss, for bags that are random
    groups of i.i.d. instances.

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

    def __init__(
        self,
        *,
        n_estimators: int = 400,
        learning_rate: float = 0.1,
        num_leaves: int = 8,
        min_child_samples: int = 20,
        reg_lambda: float = 50.0,
        extra_trees: bool = True,
        validation_share: float = 0.0,
        patience: int | None = None,
        criterion: Loss = "zero_one",
        n_jobs: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.reg_lambda = reg_lambda
        self.extra_trees = extra_trees
        self.validation_share = validation_share
        self.patience = patience
        self.criterion = criterion
        self.n_jobs = n_jobs
        self.random_state = random_state

    @staticmethod
    def _input_checks() -> dict[str, Any]:
        return {"dtype": [np.float64, np.float32], "ensure_min_samples": 2}

    def fit(
        self, X: Any, y: Any, *, bags: Any = None, noise_variance: Any = None
    ) -> BagBoostingClassifier:
        """Grow trees on bags.

        Parameters
        ----------
        X : array of shape (n_instances, n_features)
        y : array of shape (n_instances,) or (n_instances, n_classes)
            Proportion of the instance's bag; without `bags`, the instance's own label.
        bags : array of shape (n_instances,), optional
            Bag of each instance. None means bags of one, which is supervised learning.
        noise_variance : float or mapping from bag to float, optional
            Known variance of zero-mean noise in the proportions: such bags weigh less.
        """
        data = self._read(X, y, bags, noise_variance)
        if not self.validation_share:
            return self._train(data, None)
        seed = draw_seed(self.random_state)
        return self._train(*split_bags(data, share=self.validation_share, seed=seed))

    def fit_bags(self, data: Bags, *, held_out: Bags | None = None) -> BagBoostingClassifier:
        """Grow trees on a `Bags`; held-out ones, if given, choose how many."""
        self._adopt(data.task, data.n_outputs, data.X.shape[1])
        return self._train(data, held_out)

    def _train(self, data: Bags, aside: Bags | None) -> BagBoostingClassifier:
        lightgbm = import_extra("lightgbm", extra="gbm", purpose="BagBoostingClassifier")
        if self.patience is not None and aside is None:
            raise ValueError("patience needs held-out bags: set validation_share, such as 0.2.")
        self.initial_score_ = initial_scores(data)
        self._grow(lightgbm, data, aside, draw_seed(self.random_state))
        return self

    def _grow(self, lightgbm: Any, data: Bags, aside: Bags | None, seed: int) -> None:
        data = _gathered(data)
        gradients, n_outputs = BagGradients(data), data.n_outputs

        def objective(raw: Array, dataset: Any) -> tuple[Array, Array]:
            found = gradients(self._shifted(raw))
            # LightGBM wants a flat array of one output, and rows of several.
            return tuple(part.ravel() if n_outputs == 1 else part for part in found)  # type: ignore[return-value]

        _refuse_constant_features(data)
        parameters = self._parameters(gradients, seed)
        train_set = lightgbm.Dataset(data.X, np.zeros(data.n_instances), params=parameters)
        held_out = _HeldOut(self, aside, train_set, lightgbm)
        self.booster_ = lightgbm.train(
            parameters | {"objective": objective},
            train_set,
            num_boost_round=self.n_estimators,
            **held_out.arguments(),
        )
        self.held_out_risk_ = np.asarray(held_out.risks)
        self.n_trees_ = self.booster_.best_iteration if aside else self.booster_.current_iteration()
        self.booster_.free_dataset()

    def _parameters(self, gradients: BagGradients, seed: int) -> dict[str, Any]:
        return {
            "num_class": gradients.targets.shape[1],
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_child_samples,
            # Sure scores have little curvature, so its sum must forbid no leaf but an empty one;
            # LightGBM's counts are estimates and do not, which ends in a fatal error.
            "min_sum_hessian_in_leaf": gradients.smallest_curvature / 2,
            "lambda_l2": self.reg_lambda,
            "extra_trees": self.extra_trees,
            "seed": seed % 2**31,
            "num_threads": 0 if self.n_jobs == -1 else self.n_jobs,
            "feature_pre_filter": False,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }

    def _shifted(self, raw: Array) -> Array:
        """Raw scores of the trees, with an output axis and the initial score."""
        return raw.reshape(len(raw), -1) + self.initial_score_

    def _probabilities(self, raw: Array) -> Array:
        scores = scores_of_raw(self._shifted(raw), self.task_)
        return scores[:, 0] if self.task_ == "binary" else scores

    def _scores(self, X: Array) -> Array:
        threads = 0 if self.n_jobs == -1 else self.n_jobs
        raw = self.booster_.predict(
            X, raw_score=True, num_iteration=self.n_trees_, num_threads=threads
        )
        return self._probabilities(np.asarray(raw))

    def decision_function(self, X: Any) -> Array:
        """Logit of the positive class; for several classes, the logarithms of the scores."""
        probabilities = np.clip(self.predict_proba(X), 1e-300, None)
        logs = np.log(probabilities)
        return logs[:, 1] - logs[:, 0] if self.task_ == "binary" else logs

    def save(self, folder: str | Path) -> Path:
        """Write `model.safetensors` and `model.json` into a folder.

        The trees are the bytes of LightGBM's own text format, under the name "booster".
        """
        text = self.booster_.model_to_string(num_iteration=self.n_trees_)
        description = {
            "kind": type(self).__name__,
            "task": self.task_,
            "classes": self.classes_.tolist(),
            "n_features": int(self.n_features_in_),
            "n_trees": int(self.n_trees_),
        }
        tensors = {
            "booster": np.frombuffer(text.encode(), dtype=np.uint8),
            "initial_score": self.initial_score_,
            "held_out_risk": self.held_out_risk_,
        }
        return write_folder(folder, description, tensors)

    @classmethod
    def load(cls, folder: str | Path) -> BagBoostingClassifier:
        """Read a folder written by `save`. Nothing in it is executed."""
        lightgbm = import_extra("lightgbm", extra="gbm", purpose="BagBoostingClassifier")
        description, tensors = read_folder(folder, kind=cls.__name__)
        model = cls()
        model.task_ = description["task"]
        model.classes_ = np.asarray(description["classes"])
        model.n_features_in_ = description["n_features"]
        model.n_trees_ = description["n_trees"]
        model.initial_score_ = tensors["initial_score"]
        model.held_out_risk_ = tensors["held_out_risk"]
        model.booster_ = _read_booster(lightgbm, tensors["booster"], folder)
        return model


class _HeldOut:
    """Estimates the error on held-out bags after each round, and stops growing by it."""

    def __init__(
        self, model: BagBoostingClassifier, bags: Bags | None, train_set: Any, lightgbm: Any
    ) -> None:
        self.model, self.lightgbm, self.risks = model, lightgbm, list[float]()
        self.bags = None if bags is None else _gathered(bags)
        if self.bags is not None:
            self.dataset = train_set.create_valid(self.bags.X, np.zeros(self.bags.n_instances))

    def arguments(self) -> dict[str, Any]:
        """What `lightgbm.train` is to be given; nothing without held-out bags."""
        if self.bags is None:
            return {}
        rounds = self.model.patience or self.model.n_estimators
        stopping = self.lightgbm.early_stopping(rounds, verbose=False)
        return {"valid_sets": [self.dataset], "feval": self._measure, "callbacks": [stopping]}

    def _measure(self, raw: Array, dataset: Any) -> tuple[str, float, bool]:
        scores = self.model._probabilities(raw)
        risk = estimate_risk(scores, self.bags, loss=self.model.criterion)  # type: ignore[arg-type]
        self.risks.append(risk.value)
        return "held_out_risk", self.risks[-1], False


def _gathered(data: Bags) -> Bags:
    """The same bags with their own instances, the first bag's first."""
    return replace(data, X=data.X[data.rows], rows=np.arange(data.n_instances))


def _refuse_constant_features(data: Bags) -> None:
    if not (np.ptp(data.X, axis=0) > 0).any():
        raise BagDataError("X must hold a feature that varies: a tree cannot split on constants.")


def _read_booster(lightgbm: Any, text: Array, folder: str | Path) -> Any:
    try:
        return lightgbm.Booster(model_str=text.tobytes().decode())
    except (lightgbm.basic.LightGBMError, UnicodeDecodeError) as error:
        raise ModelFolderError(f"{folder} holds trees that cannot be read: {error}.") from error
