"""Base class of the boosted estimators: LightGBM grows trees by gradients over bags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from unbag.arguments import check_whole
from unbag.arrays import Array, Arrays
from unbag.bags import Bags
from unbag.bags.holdout import fold_numbers
from unbag.errors import BagDataError
from unbag.estimators.gradients import BagGradients, CountGradients, EventGradients, initial_scores
from unbag.estimators.instances import TABLES_WITH_GAPS, InstanceEstimator
from unbag.estimators.saving import read_booster
from unbag.extras import import_extra
from unbag.randomness import draw_seed

Gradients = BagGradients | CountGradients | EventGradients


@dataclass(eq=False, repr=False, kw_only=True)
class BoostedTrees(InstanceEstimator):
    """Boosted trees; a model folder stores LightGBM's text format."""

    _state = ("n_trees", "initial_score", "held_out_risk")
    _checks = TABLES_WITH_GAPS  # LightGBM finds out on which side missing values go
    # Not for `BagBoostingRegressor` to choose.
    min_child_samples, extra_trees = 20, True
    categorical_features = None  # type: Any

    n_estimators: int = 400
    n_runs: int | None = None
    cv: int = 0
    learning_rate: float = 0.1
    num_leaves: int = 8
    reg_lambda: float | None = None
    n_jobs: int = 1
    random_state: Any = None

    def _gradients(self, data: Bags) -> Gradients:
        raise NotImplementedError

    def _initial_score(self, data: Bags) -> Array:
        return initial_scores(data)

    def _probabilities(self, raw: Array) -> Array:
        """Predictions from the raw scores of all runs."""
        raise NotImplementedError

    def _risk(self, scores: Array, bags: Bags) -> float:
        """Risk of predictions on held-out bags."""
        raise NotImplementedError

    def _fit_trees(self, data: Bags) -> Self:
        """Train, with the number of rounds of the least cross-validated risk if there are folds."""
        check_whole("cv", self.cv, least=0)
        risks = self._left_out_risks(data)
        self._train(data, None)
        best = int(risks.argmin()) + 1 if len(risks) else self.n_estimators
        self.n_trees_ = min(best, self.booster_.current_iteration())
        self.held_out_risk_ = risks
        return self

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
            model.task_ = self.task_
            risks.append(model._train(kept, left).held_out_risk_)
        return np.asarray(np.mean(risks, axis=0))

    def _train(self, data: Bags, aside: Bags | None) -> Self:
        check_whole("n_estimators", self.n_estimators)
        check_whole("n_runs", self.n_runs, optional=True)
        lightgbm = import_extra("lightgbm", extra="gbm", purpose=type(self).__name__)
        self.initial_score_, data = self._initial_score(data), data.gathered()
        first = data.X[:1]
        if ((first == data.X) | (np.isnan(data.X) & np.isnan(first))).all():
            raise BagDataError(
                "X must hold a feature that varies: a tree cannot split on constants."
            )
        gradients = self._gradients(data)
        n_columns = (self.n_runs or gradients.default_runs) * data.n_outputs

        def objective(raw: Array, dataset: Any) -> tuple[Array, Array]:
            runs = self._by_run(raw).swapaxes(0, 1)
            found = (np.hstack(parts) for parts in zip(*map(gradients, runs), strict=True))
            # LightGBM wants a flat array of one column, and rows of several.
            slopes, curvatures = (part.ravel() if n_columns == 1 else part for part in found)
            return slopes, curvatures

        seed = draw_seed(self.random_state)
        parameters = self._parameters(gradients, seed) | {"num_class": n_columns}
        categories = "auto" if self.categorical_features is None else [*self.categorical_features]
        train_set = lightgbm.Dataset(
            data.X, np.zeros(data.n_instances), params=parameters, categorical_feature=categories
        )
        risks: list[float] = []
        measured = {} if aside is None else self._measured(train_set, aside.gathered(), risks)
        self.booster_ = lightgbm.train(
            parameters | {"objective": objective},
            train_set,
            num_boost_round=self.n_estimators,
            **measured,
        )
        self.held_out_risk_ = np.asarray(risks)
        self.n_trees_ = self.booster_.current_iteration()
        self.booster_.free_dataset()
        return self

    def _measured(self, train_set: Any, aside: Bags, risks: list[float]) -> dict[str, Any]:
        """Arguments of `lightgbm.train` that record the held-out risk after each round."""

        def measure(raw: Array, dataset: Any) -> tuple[str, float, bool]:
            risks.append(self._risk(self._probabilities(raw), aside))
            return "held_out_risk", risks[-1], False

        held_out = train_set.create_valid(aside.X, np.zeros(aside.n_instances))
        return {"valid_sets": [held_out], "feval": measure}

    def _parameters(self, gradients: Gradients, seed: int) -> dict[str, Any]:
        penalty = gradients.default_penalty if self.reg_lambda is None else self.reg_lambda
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_child_samples,
            # Sure scores have little curvature, so its sum must forbid no leaf but an empty one;
            # LightGBM's counts are estimates and do not, which ends in a fatal error.
            "min_sum_hessian_in_leaf": gradients.smallest_curvature / 2,
            "lambda_l2": penalty,
            "extra_trees": self.extra_trees,
            "seed": seed % 2**31,
            "num_threads": 0 if self.n_jobs == -1 else self.n_jobs,
            "feature_pre_filter": False,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }

    def _by_run(self, raw: Array) -> Array:
        """Raw scores with the initial one, shape (n_instances, n_runs, n_outputs)."""
        return raw.reshape(len(raw), -1, len(self.initial_score_)) + self.initial_score_

    def _scores(self, X: Array) -> Array:
        threads = 0 if self.n_jobs == -1 else self.n_jobs
        options = {"num_iteration": self.n_trees_, "num_threads": threads}
        raw = self.booster_.predict(X, raw_score=True, **options)
        return self._probabilities(np.asarray(raw))

    @property
    def feature_importances_(self) -> Array:
        """Share of each feature in the total gain of splits; see also `unbag.column_importance`.

        For an encoded frame, features are ``encoder_.get_feature_names_out()``.
        """
        check_is_fitted(self)
        options = {"importance_type": "gain", "iteration": self.n_trees_}
        gains = np.asarray(self.booster_.feature_importance(**options))
        return gains / max(gains.sum(), np.finfo(float).tiny)

    def _learned(self) -> tuple[dict[str, Any], Arrays]:
        plain, arrays = super()._learned()
        text = self.booster_.model_to_string(num_iteration=self.n_trees_)
        return plain, arrays | {"booster": np.frombuffer(text.encode(), dtype=np.uint8)}

    def _restore(self, description: dict[str, Any], tensors: Arrays, folder: Path) -> None:
        super()._restore(description, tensors, folder)
        self.booster_ = read_booster(tensors["booster"], folder)
