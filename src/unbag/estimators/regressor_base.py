"""Base class of the regressors: read averages of amounts as bags, predict, score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from unbag.arrays import Array
from unbag.bags import Bags, Task, bags_of, variance_of
from unbag.errors import BagDataError
from unbag.estimators.instances import InstanceEstimator, bags_around, check_lengths
from unbag.estimators.leaks import warn_of_leaks
from unbag.evaluation.amounts import evaluate_amounts


class BagRegressorBase(RegressorMixin, InstanceEstimator):
    """Base of the regressors. Without `bags`, `fit` and `score` are supervised learning."""

    def fit(
        self, X: Any, y: Any, *, bags: Any = None, noise_variance: Any = None, weights: Any = None
    ) -> Self:
        """Fit to bags.

        Parameters
        ----------
        X : array of shape (n_instances, n_features)
        y : array of shape (n_instances,)
            Average amount of the instance's bag; without `bags`, the amount of the instance. For
            sums use ``fit_bags(Bags.from_arrays(X, bags=ids, sums=sums))``.
        bags : array of shape (n_instances,), optional
            Bag of each instance. None means bags of one, which is supervised learning.
        noise_variance : float, mapping from bag, or array like `y`, optional
            Known variance of noise in the averages: such bags have less weight.
        weights : array of shape (n_instances,), optional
            Weight of each instance in the average of its bag, such as its exposure; see
            `Bags.from_arrays`.
        """
        return self._fit(self._read(X, y, bags, noise_variance, weights))

    def _fit(self, data: Bags) -> Self:
        if (data.sizes > 1).any() and np.ptp(data.proportions) == 0:
            raise BagDataError(
                f"nothing to learn from: all {data.n_bags} bags have the average "
                f"{data.proportions[0]:g}. Check which column was read; bags must differ."
            )
        self._fit_amounts(replace(data, task="amount"))
        return self

    def _fit_amounts(self, data: Bags) -> None:
        raise NotImplementedError

    def _read(
        self, X: Any, y: Any, bags: Any, noise_variance: Any, weights: Any, *, reset: bool = True
    ) -> Bags:
        """Validate the arguments of `fit`, or of `score`."""
        bags, noise_variance = bags_of(y, bags), variance_of(y, noise_variance)
        self._refuse_no_target(y)
        instances, X = X, self._numbers(X, reset=reset)
        y = check_array(np.asarray(y), ensure_2d=False, dtype=float, input_name="y")
        y = column_or_1d(y, warn=True)
        check_lengths(X, y)
        self.task_ = "amount"
        if bags is None and noise_variance is not None:
            raise BagDataError(
                "noise_variance describes the averages of bags, but no bags were given. Pass "
                f"`bags`, or a BagTarget as y. Got {noise_variance!r}."
            )
        bags = np.arange(len(X)) if bags is None else bags
        given = {"noise_variance": noise_variance, "weights": weights}
        data = bags_around(X, bags=bags, y=y, task="amount", **given)
        if reset:
            warn_of_leaks(instances, data, self.encoder_)
        return data

    def _adopt(self, task: Task, n_outputs: int, n_features: int) -> None:
        if n_outputs > 1:
            raise BagDataError(
                f"{type(self).__name__} learns one amount, got {n_outputs} columns of a {task} "
                "task. Fit one model a column."
            )
        self.task_, self.n_features_in_, self.encoder_ = "amount", n_features, None

    def predict(self, X: Any) -> Array:
        """Amount of each instance."""
        return self._scores(self._instances(X))

    def score(
        self,
        X: Any,
        y: Any,
        *,
        bags: Any = None,
        noise_variance: Any = None,
        weights: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """R2 of single amounts: measured on them, or estimated from bags.

        Parameters
        ----------
        X, y, bags, noise_variance, weights
            As for `fit`.
        sample_weight : array of shape (n_instances,), optional
            Only without bags: an average cannot be reweighted inside its bag.
        """
        check_is_fitted(self)
        if bags_of(y, bags) is None and noise_variance is None and weights is None:
            return float(r2_score(y, self.predict(X), sample_weight=sample_weight))
        if sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be used with bags: a bag's average is an unweighted mean."
            )
        data = self._read(X, y, bags, noise_variance, weights, reset=False)
        return evaluate_amounts(self._scores(np.asarray(data.X)), data)["r2"].value
