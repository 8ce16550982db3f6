"""Logistic and Poisson regression by the likelihood of counts and of events of bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, softmax

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.tasks import refuse_ranges
from unbag.errors import BagDataError
from unbag.estimators.base import BagEstimator
from unbag.estimators.count_regression import BagCounts, EventCounts
from unbag.estimators.linear import LikelihoodModel
from unbag.estimators.regressor_base import BagRegressorBase


@dataclass(eq=False, repr=False, kw_only=True)
class BagLogisticClassifier(BagEstimator, LikelihoodModel):
    r"""Logistic regression from bags, by the likelihood of their counts.

    For scores :math:`f_j = \sigma(w^\top x_j + b)` the count :math:`n_i` of a bag has mean
    :math:`m_i = \sum_j f_j` and variance :math:`v_i = \sum_j f_j (1 - f_j)`. The weights follow
    the score of the means,

    .. math:: \sum_i \frac{n_i - m_i}{V_i} \nabla m_i - \lambda w,
              \qquad V_i = v_i + \tau^2 v_i^2 + k_i^2 s_i,

    as long as the Gaussian likelihood
    :math:`-\frac 1 2 \sum_i \left[ (n_i - m_i)^2 / V_i + \log V_i \right]` grows. Here
    :math:`\tau^2` is the variance of a bag effect on the logits and :math:`s_i` that of known noise
    in the proportion. The penalty is chosen by the likelihood of held-out bags.

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

    bag_effects: bool = False

    def _fit(self, data: Bags) -> Self:
        return self._fit_counts(data, BagCounts.of(data))

    def _scores(self, X: Array) -> Array:
        linear = self._linear(X)
        # Sigmoids divided by their sum, which may be too small for a number.
        return softmax(log_expit(linear), axis=1) if self.task_ == "multiclass" else expit(linear)


class BagPoissonRegressor(BagRegressorBase, LikelihoodModel):
    r"""Poisson regression from bags: rates of single instances from numbers of events of bags.

    Instance :math:`j` with exposure :math:`e_j` has a Poisson number of events with mean
    :math:`e_j \exp(w^\top x_j + b)`. The number of a bag, :math:`n_i`, is then Poisson with mean
    :math:`m_i = \sum_j e_j \exp(w^\top x_j + b)`, and the weights maximise

    .. math:: \sum_i \left[ n_i \log m_i - m_i \right] - \frac \lambda 2 \lVert w \rVert^2 .

    The penalty is chosen by the likelihood of held-out bags.

    Parameters
    ----------
    penalties, cv, random_state
        As for `BagLogisticClassifier`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    penalty_ : float
        The chosen penalty.

    Notes
    -----
    The likelihood is exact for bags of any size and for any grouping in which events are
    independent given the features. `y` is the rate of each bag, its events divided by its exposure,
    and `weights` are the exposures of the instances; without weights all are one. Missing values
    are replaced by the mean of their column.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2)); exposure = rng.uniform(0.5, 2, size=4000)
    >>> events = rng.poisson(exposure * np.exp(X[:, 0] - 1))
    >>> bags = np.repeat(np.arange(200), 20)
    >>> rate = (np.bincount(bags, events) / np.bincount(bags, exposure))[bags]
    >>> model = BagPoissonRegressor(random_state=0).fit(X, rate, bags=bags, weights=exposure)
    >>> bool(abs(model.coef_ - [1, 0]).max() < 0.2)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _fit_amounts(self, data: Bags) -> None:
        check_events(data)
        self._fit_counts(data, [EventCounts.events(data)])

    def _scores(self, X: Array) -> Array:
        return np.exp(self._linear(X))


def check_events(data: Bags) -> None:
    """Raise for values that cannot be rates of events."""
    refuse_ranges(data, "A regression of events")
    if data.noise_variance is not None:
        raise BagDataError(
            "noise_variance is not for numbers of events, whose likelihood is Poisson. Use "
            "BagRidgeRegressor, which weighs noisy averages less."
        )
    if (data.proportions < 0).any():
        bag = data.ids[int(data.proportions.argmin())]
        raise BagDataError(
            f"y must hold rates of events, which are not negative, but bag {bag!r} has "
            f"{data.proportions.min():g}. Use BagRidgeRegressor for other amounts."
        )
