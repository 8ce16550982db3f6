"""Base classes of the classifiers: read arguments as bags, predict, score, show the risk."""

from __future__ import annotations

from html import escape
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from unbag.arrays import Array
from unbag.bags import Bags, Task, bags_of, refuse_without_bags, variance_of
from unbag.bags.reading import in_class_order, read_blocks
from unbag.bags.tasks import refuse_amounts
from unbag.bags.validation import check_proportions_differ
from unbag.errors import BagDataError
from unbag.estimators.instances import InstanceEstimator, bags_around, check_lengths
from unbag.estimators.leaks import warn_of_leaks
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.results import Baseline
from unbag.evaluation.risk import estimate_risk


class BagEstimator(ClassifierMixin, InstanceEstimator):
    """Base of the classifiers. Without `bags`, `fit` and `score` are supervised learning."""

    classes_: Array

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        bags: Any = None,
        noise_variance: Any = None,
        task: Task | None = None,
    ) -> Self:
        """Fit to bags.

        Parameters
        ----------
        X : array of shape (n_instances, n_features), or (n_instances, ...) for nets
            A frame with text, dates or missing values is encoded by `encoder_`.
        y : array of shape (n_instances,) or (n_instances, n_classes)
            Proportion of the instance's bag; without `bags`, the label of the instance.
        bags : array of shape (n_instances,), optional
            Bag of each instance. None means bags of one, which is supervised learning.
        noise_variance : float, mapping from bag, or array like `y`, optional
            Known variance of zero-mean noise in the proportions. Such bags have less weight, unless
            the notes of the class state otherwise.
        task : {"binary", "multiclass", "multilabel"}, optional
            By default inferred: several proportions that sum to one are classes.
        """
        return self._fit(self._read(X, y, bags, noise_variance, task))

    def _read(
        self,
        X: Any,
        y: Any,
        bags: Any,
        noise_variance: Any,
        task: Task | None = None,
    ) -> Bags:
        """Validate the arguments of `fit`."""
        bags, noise_variance = bags_of(y, bags), variance_of(y, noise_variance)
        self._refuse_no_target(y)
        refuse_amounts(task, type(self).__name__)
        names = list(getattr(y, "columns", ()))
        y, given = np.asarray(y), X
        X = self._numbers(X, reset=True)
        check_lengths(X, y)
        if bags is None:
            refuse_without_bags(y, noise_variance=noise_variance, task=task)
            return self._bags_of_one(X, y)
        data = bags_around(X, bags=bags, y=y, noise_variance=noise_variance, task=task)
        check_proportions_differ(data.proportions)
        warn_of_leaks(given, data, self.encoder_)
        named = data.task == "multiclass" and names
        self.classes_ = np.array(names) if named else np.arange(max(2, data.n_outputs))
        self.task_ = data.task
        return data

    def _adopt(self, task: Task, n_outputs: int, n_features: int) -> None:
        refuse_amounts(task, type(self).__name__)
        self.task_ = task
        self.classes_ = np.arange(max(2, n_outputs))
        self.n_features_in_, self.encoder_ = n_features, None

    def _bags_of_one(self, X: Array, y: Array) -> Bags:
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if y.ndim > 1:
            raise BagDataError(
                f"y must hold one label per instance without bags, got shape {y.shape}. Pass "
                'bags=np.arange(len(y)), and task="multilabel" for several labels.'
            )
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity.")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class only: {self.classes_[0]!r}."
            )
        codes = np.searchsorted(self.classes_, y)
        self.task_ = "binary" if len(self.classes_) == 2 else "multiclass"
        values = (
            codes.astype(float) if self.task_ == "binary" else np.eye(len(self.classes_))[codes]
        )
        n = len(X)
        return Bags(X, np.arange(n), np.ones(n, int), values, list(range(n)), None, self.task_)

    def _by_task(self, outputs: Array) -> Array:
        """Convert outputs of shape (n, n_outputs) to the shape of `_scores`."""
        return outputs[:, 0] if self.task_ == "binary" else outputs

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, shape (n_instances, n_classes).

        For a multilabel task, the probability of each label.
        """
        scores = self._scores(self._instances(X))
        return np.stack([1 - scores, scores], axis=1) if scores.ndim == 1 else scores

    def predict(self, X: Any) -> Array:
        """Class of each instance; for a multilabel task, one 0 or 1 per label."""
        probabilities = self.predict_proba(X)
        if self.task_ == "multilabel":
            return (probabilities > 0.5).astype(int)
        return self.classes_[probabilities.argmax(axis=1)]

    def score(
        self,
        X: Any,
        y: Any,
        *,
        bags: Any = None,
        noise_variance: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Accuracy: measured on labels, or estimated from bags.

        Parameters
        ----------
        X, y, bags, noise_variance
            As for `fit`.
        sample_weight : array of shape (n_instances,), optional
            Only for labels: a proportion cannot be reweighted inside its bag.
        """
        check_is_fitted(self)
        bags, noise_variance = bags_of(y, bags), variance_of(y, noise_variance)
        if bags is None:
            refuse_without_bags(y, noise_variance=noise_variance)
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        if sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be used with bags: a bag's proportion is an unweighted mean."
            )
        X, y = self._numbers(X, reset=False), in_class_order(y, self.classes_)
        data = bags_around(X, bags=bags, y=y, noise_variance=noise_variance, task=self.task_)
        return 1.0 - estimate_risk(self._scores(X), data).value


class BlockEstimator(BagEstimator):
    """Base of the classifiers that are fitted in folds: `fit` also takes the block of each bag."""

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        bags: Any = None,
        noise_variance: Any = None,
        task: Task | None = None,
        blocks: Any = None,
    ) -> Self:
        """Fit to bags.

        Parameters
        ----------
        X, y, bags, noise_variance, task
            As for `BagRidgeClassifier.fit`; missing values are passed on to the classifier.
        blocks : mapping from bag, or array of shape (n_instances,) or (n_bags,), optional
            Block of each bag, such as its day: folds keep blocks whole.
        """
        data = self._read(X, y, bags, noise_variance, task)
        return self._fit(data, read_blocks(blocks, data.bag_of_row, data.ids))

    def fit_bags(self, data: Bags, *, blocks: Array | None = None) -> Self:
        """Fit to a `Bags`, with one block per bag."""
        self._adopt(data.task, data.n_outputs, data.X.shape[1])
        return self._fit(data, blocks)

    def _fit(self, data: Bags, blocks: Array | None = None) -> Self:
        raise NotImplementedError


class RiskRepr(BaseEstimator):
    """Adds a line about `risk_` to scikit-learn's display of an estimator.

    `repr` is unchanged, because clones and tools read it.
    """

    risk_: Estimate | None
    baseline_: Baseline | None

    def __str__(self) -> str:
        line = self._risk_line()
        return f"{self!r}\n{line}" if line else repr(self)

    def _html_repr(self) -> str:
        html, line = super()._html_repr(), self._risk_line()
        return f"{html}<p>{escape(line)}</p>" if line else html

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return super()._repr_mimebundle_(**kwargs) | {"text/plain": str(self)}

    def _risk_line(self) -> str:
        risk = getattr(self, "risk_", None)
        if risk is None:
            return ""
        line = f"estimated error {risk.percent.removesuffix('bags')}held-out bags"
        if not getattr(self, "risk_is_final_", True):
            line += ", by nets not trained on them"
        baseline = getattr(self, "baseline_", None)
        return line if baseline is None else f"{line}; {baseline}. {baseline.verdict(risk)}".strip()
