"""Fit any classifier to label probabilities: by weights, by sampling, or by soft labels."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from unbag.arrays import Array, Arrays
from unbag.bags import Task
from unbag.estimators.gradients import scores_of_raw
from unbag.estimators.saving import ModelFolderError, read_booster
from unbag.extras import has_module, import_extra
from unbag.randomness import numpy_generator

# Rows of less weight than this cost time and change nothing.
NEGLIGIBLE = 1e-4
# Labels drawn for each row where weights are not taken, spread evenly over its probabilities.
N_DRAWS = 3
CERTAIN = 40.0  # a logit whose probability is zero or one in double precision
N_TREES = 100


def soft_learner(
    estimator: Any, X: Array, task: Task, *, max_leaf_nodes: int = 15, n_jobs: int = 1
) -> SoftLearner:
    """Learner of a classifier; by default trees of LightGBM, or of scikit-learn."""
    if isinstance(estimator, type) or not (
        estimator is None or hasattr(estimator, "predict_proba")
    ):
        raise ValueError(
            f"estimator must be a classifier with predict_proba, got {estimator!r}. Wrap one that "
            "gives no probabilities: CalibratedClassifierCV(SVC())."
        )
    if estimator is None and has_module("lightgbm"):
        return TreeLearner(X, task, n_jobs=n_jobs, num_leaves=max_leaf_nodes)
    if estimator is None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        smallest = int(np.clip(len(X) // 40, 2, 50))
        estimator = HistGradientBoostingClassifier(
            learning_rate=0.07,
            max_leaf_nodes=max_leaf_nodes,
            min_samples_leaf=smallest,
            early_stopping=False,
        )
    return ClassifierLearner(estimator, X, task)


class TreeLearner:
    """LightGBM with cross entropy of soft labels, without duplicated rows and with shared bins."""

    def __init__(self, X: Array, task: Task, *, n_jobs: int = 1, num_leaves: int = 15) -> None:
        self.lightgbm = import_extra("lightgbm", extra="gbm", purpose="TreeLearner")
        self.task, self.n_rows = task, len(X)
        self.parameters: dict[str, Any] = {
            "objective": "cross_entropy",
            "num_leaves": num_leaves,
            "learning_rate": 0.07,
            "min_data_in_leaf": int(np.clip(len(X) // 40, 2, 50)),
            "lambda_l2": 1.0,
            "num_threads": n_jobs,
            "feature_pre_filter": False,
            "deterministic": True,
            "force_col_wise": True,
            "verbose": -1,
        }
        # Two samples of bins are none: tables of few rows have bins of few, and few bins, which
        # are what wide tables spend their time on.
        self.parameters["min_data_in_bin"] = 3 if len(X) > 200 else 1
        self.parameters["max_bin"] = int(np.clip(len(X) // 16, 31, 255))
        data = self.lightgbm.Dataset(
            X, np.zeros(len(X)), params=self.parameters, free_raw_data=True
        )
        self.data = data.construct()

    def fit(self, rows: Array, targets: Array, *, seed: int) -> TreeModel:
        """Grow one booster per output."""
        whole = len(rows) == self.n_rows
        data = self.data if whole else self.data.subset(np.sort(rows)).construct()
        targets = targets if whole else targets[np.argsort(rows)]
        parameters, boosters = self.parameters | {"seed": seed % 2**31}, []
        for column in targets.T:
            data.set_label(np.clip(column, 0, 1))
            boosters.append(self.lightgbm.train(parameters, data, N_TREES))
        return TreeModel(boosters, self.task, self.parameters["num_threads"])


class TreeModel:
    """One booster per output."""

    def __init__(self, boosters: list[Any], task: Task, n_jobs: int = 1) -> None:
        self.boosters, self.task, self.n_jobs = boosters, task, n_jobs

    def scores(self, X: Array) -> Array:
        """Probabilities, normalised for classes."""
        columns = [booster.predict(X, num_threads=self.n_jobs) for booster in self.boosters]
        return normalised(np.column_stack(columns), self.task)


class ClassifierLearner:
    """A scikit-learn classifier on weighted or sampled labels."""

    def __init__(self, estimator: Any, X: Array, task: Task) -> None:
        self.estimator, self.X, self.task = estimator, X, task

    def fit(self, rows: Array, targets: Array, *, seed: int) -> ClassifierModel:
        """Fit one classifier, or one per label."""
        if self.task == "multiclass":
            return ClassifierModel([self._fit_one(rows, targets, seed)], targets.shape[1])
        pairs = [np.column_stack([1 - column, column]) for column in targets.T]
        return ClassifierModel([self._fit_one(rows, pair, seed) for pair in pairs])

    def _fit_one(self, rows: Array, targets: Array, seed: int) -> Any:
        estimator, weight_name = clone(self.estimator), weight_argument(self.estimator)
        if weight_name is None:
            draws = numpy_generator(seed, "draws").uniform(size=len(rows))[:, None]
            levels = (np.arange(N_DRAWS) + draws) / N_DRAWS
            labels = (targets.cumsum(axis=1)[:, None] < levels[:, :, None]).sum(axis=2)
            labels = np.minimum(labels, targets.shape[1] - 1).ravel()
            rows, weights = np.repeat(rows, N_DRAWS), {}
        else:
            where, labels = np.nonzero(targets > NEGLIGIBLE)
            rows, weights = rows[where], {weight_name: targets[where, labels]}
        if labels.min() == labels.max():
            return OneClass(labels[0], self.X.shape[1])
        with sklearn.config_context(enable_metadata_routing=False):
            return estimator.fit(self.X[rows], labels, **weights)


class OneClass:
    """Replaces a classifier if one class has all the weight, which most classifiers reject.

    Its `coef_` and `intercept_` are saved.
    """

    def __init__(self, label: int, n_features: int) -> None:
        self.classes_ = np.array([label])
        self.coef_ = np.zeros((1, n_features))
        self.intercept_ = np.array([CERTAIN if label else -CERTAIN])

    def predict_proba(self, X: Array) -> Array:
        """One for the class."""
        return np.ones((len(X), 1))


class ClassifierModel:
    """Fitted classifiers: one for all classes, or one per label."""

    def __init__(self, fitted: list[Any], n_classes: int | None = None) -> None:
        self.fitted, self.n_classes = fitted, n_classes

    def scores(self, X: Array) -> Array:
        """Probabilities; zero for a class without weight."""
        found = np.zeros((len(self.fitted), len(X), self.n_classes or 2))
        for own, one in zip(found, self.fitted, strict=True):
            own[:, np.asarray(one.classes_, dtype=int)] = one.predict_proba(X)
        return found[0] if self.n_classes else found[:, :, 1].T


class LinearModel:
    """Logits linear in the features: the saved form of a logistic regression."""

    def __init__(self, weights: Array, intercept: Array, task: Task) -> None:
        self.weights, self.intercept, self.task = weights, intercept, task

    def scores(self, X: Array) -> Array:
        """Probabilities."""
        return scores_of_raw(X @ self.weights + self.intercept, self.task)


SoftLearner = TreeLearner | ClassifierLearner
"""Fits models to label probabilities of some rows."""
SoftModel = TreeModel | ClassifierModel | LinearModel
"""Gives probabilities of shape (n_instances, n_outputs)."""


def weight_argument(estimator: Any) -> str | None:
    """Name under which `fit` takes weights, also through the last step of a pipeline.

    None if an inner classifier takes none, because some wrappers would drop them.
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_argument(last)
        return None if inner is None else f"{name}__{inner}"
    if "sample_weight" not in signature(estimator.fit).parameters:
        return None
    values = estimator.get_params().values() if hasattr(estimator, "get_params") else ()
    inside = [value for value in values if hasattr(value, "fit") and hasattr(value, "predict")]
    # A pipeline takes weights, but by another name.
    taken = all(weight_argument(one) == "sample_weight" for one in inside)
    return "sample_weight" if taken else None


def normalised(scores: Array, task: Task) -> Array:
    """Scale probabilities of classes to sum to one."""
    if task != "multiclass":
        return scores
    return scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-300)


def tensors_of(model: SoftModel) -> Arrays:
    """Saved form of a model: texts of boosters, or weights of logistic regressions."""
    if isinstance(model, TreeModel):
        texts = [booster.model_to_string().encode() for booster in model.boosters]
        return {f"booster{j}": np.frombuffer(text, np.uint8) for j, text in enumerate(texts)}
    if isinstance(model, LinearModel):
        return {"weights": model.weights, "intercept": model.intercept}
    kinds = {type(one).__name__ for one in model.fitted} - {OneClass.__name__}
    if not kinds <= {"LogisticRegression"}:
        raise ModelFolderError(
            f"A {kinds.pop()} has no form that could be saved and read back without executing it. "
            "BagEMClassifier saves trees of LightGBM (estimator=None) and LogisticRegression; "
            "keep others with joblib, where you trust the file."
        )
    weights = np.concatenate([one.coef_ for one in model.fitted]).T
    intercept = np.concatenate([one.intercept_ for one in model.fitted])
    if model.n_classes:
        weights, intercept = _by_class(
            weights, intercept, model.fitted[0].classes_, model.n_classes
        )
    return {"weights": weights, "intercept": intercept}


def _by_class(
    weights: Array, intercept: Array, classes: Array, n_classes: int
) -> tuple[Array, Array]:
    """One column per class: two classes are fitted by one column, those without weight by none."""
    if len(classes) == 2:
        weights, intercept = np.pad(weights, ((0, 0), (1, 0))), np.pad(intercept, (1, 0))
    slopes, shifts = np.zeros((len(weights), n_classes)), np.full(n_classes, -np.inf)
    slopes[:, classes], shifts[classes] = weights, intercept
    return slopes, shifts


def model_of(tensors: Arrays, task: Task, folder: str | Path) -> SoftModel:
    """The model saved by `tensors_of`."""
    if "weights" in tensors:
        return LinearModel(tensors["weights"], tensors["intercept"], task)
    names = sorted((n for n in tensors if n.startswith("booster")), key=lambda n: int(n[7:]))
    return TreeModel([read_booster(tensors[name], folder) for name in names], task)
