"""`BagLogisticClassifier`: logistic regression by the likelihood of bag counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from numpy.typing import NDArray
from scipy.special import expit

from unbag.bags import Bags
from unbag.estimators.base import BagEstimator
from unbag.estimators.count_regression import BagCounts
from unbag.estimators.instances import TABLES_WITH_GAPS
from unbag.estimators.linear import LikelihoodModel

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class BagLogisticClassifier(BagEstimator, LikelihoodModel):
    r"""Logistic regression from bags, by the likelihood of their counts.

    For scores :math:`f_j = \sigma(w^\top x_j + b)` the count :math:`n_i` of a bag has mean
    :math:`m_i = \sum_j f_j` and variance :math:`v_i = \sum_j f_j (1 - f_j)`. The weights maximise

    .. math:: -\frac 1 2 \sum_i \left[ \frac{(n_i - m_i)^2}{V_i} + \log V_i \right]
              - \frac \lambda 2 \lVert w \rVert^2,
              \qquad V_i = v_i + \tau^2 v_i^2 + k_i^2 s_i

    where :math:`\tau^2` is the variance of a bag effect on the logits and :math:`s_i` that of known
    noise in the proportion. The penalty is chosen by the likelihood of held-out bags.

    Parameters
    ----------
    penalties : sequence of float, optional
        Candidate values of :math:`\lambda`, for columns scaled to unit variance; columns of two
        values are scaled to 0 and 1. By default ten from 0.3 to 30,000.
    bag_effects : bool
        Whether :math:`\tau^2` is estimated. Natural groups need it; random bags have none.
    cv : int
        Folds of whole bags that choose the penalty.
    random_state : int, RandomState, Generator or None
        Seed of the folds.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_features, n_outputs)
    intercept_ : float or array of shape (n_outputs,)
    penalty_ : float
        The chosen penalty.
    effect_variance_ : array of shape (n_outputs,)
        Estimated :math:`\tau^2`.
    classes_ : array
        Class labels.

    Notes
    -----
    The likelihood holds for any grouping in which labels are independent given the features; its
    Gaussian approximation is exact in the limit of large bags. The variance of effects is accurate
    for small ones: a deviation of 1 is estimated as about 0.8. Several classes are fitted one by
    one, and their probabilities normalised. Missing values are replaced by the column mean.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); labels = X[:, 0] > 0
    >>> bags = np.repeat(np.arange(100), 20)
    >>> y = labels.reshape(100, 20).mean(axis=1)[bags]
    >>> clf = BagLogisticClassifier(random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.95)
    True
    """

    _checks = TABLES_WITH_GAPS

    _: KW_ONLY
    penalties: Sequence[float] | None = None
    bag_effects: bool = False
    cv: int = 4
    random_state: Any = None

    def _fit(self, data: Bags) -> Self:
        return self._fit_counts(data, BagCounts.of(data))

    def _scores(self, X: Array) -> Array:
        scores = expit(self._linear(X))
        return scores / scores.sum(axis=1, keepdims=True) if self.task_ == "multiclass" else scores

    def _decisions(self, X: Array) -> Array:
        return self._linear(X)
