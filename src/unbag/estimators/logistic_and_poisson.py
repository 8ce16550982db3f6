"""Logistic and Poisson regression by the likelihood of counts and of events of bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, softmax

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.holdout import block_folds
from unbag.bags.tasks import refuse_ranges
from unbag.errors import BagDataError
from unbag.estimators.base import BagEstimator
from unbag.estimators.columns import filled, scaled_columns, standardised
from unbag.estimators.count_regression import BagCounts, EventCounts, LogitFit, fit_logits
from unbag.estimators.instances import TABLES_WITH_GAPS, LinearEstimator, penalty_grid
from unbag.estimators.regressor_base import BagRegressorBase
from unbag.randomness import draw_seed


@dataclass(eq=False, repr=False, kw_only=True)
class LikelihoodModel(LinearEstimator):
    """Linear predictors by the likelihood of counts, with a cross-validated penalty."""

    _state = ("coef", "intercept", "penalty", "effect_variance", "fill_values")
    _checks = TABLES_WITH_GAPS
    bag_effects = False

    penalties: Sequence[float] | None = None
    cv: int = 4
    random_state: Any = None

    def _fit_counts(self, data: Bags, outputs: Sequence[BagCounts]) -> Self:
        grid = np.sort(penalty_grid(self.penalties, np.geomspace(0.3, 3e4, 10)))[::-1]
        X = np.asarray(data.X, dtype=float)[data.rows]
        centre, scale = scaled_columns(X)
        X = np.column_stack([standardised(X, centre, scale), np.ones(len(X))])
        self.penalty_ = self._best(X, outputs, grid) if len(grid) > 1 else float(grid[0])
        fits = [_path(X, counts, [self.penalty_], self.bag_effects)[0] for counts in outputs]
        weights = np.stack([fit.weights for fit in fits], axis=1)
        coefficients = weights[:-1] / scale[:, None]
        self._set_weights(coefficients, weights[-1] - centre @ coefficients)
        self.effect_variance_ = np.array([fit.effect for fit in fits])
        self.fill_values_ = centre
        return self

    def _best(self, X: Array, outputs: Sequence[BagCounts], grid: Array) -> float:
        """Penalty with the largest likelihood of held-out bags."""
        sizes = outputs[0].sizes
        folds = block_folds(len(sizes), self.cv, seed=draw_seed(self.random_state), blocks=None)
        losses, row_folds = np.zeros(len(grid)), np.repeat(folds, sizes)
        for fold in range(folds.max() + 1 if len(sizes) > 2 else 0):
            own, kept = row_folds == fold, np.flatnonzero(folds != fold)
            for counts in outputs:
                held_out = counts.take(np.flatnonzero(folds == fold))
                for i, fit in enumerate(_path(X[~own], counts.take(kept), grid, self.bag_effects)):
                    scores = held_out.scores(X[own] @ fit.weights)
                    losses[i] += held_out.minus_log(scores, fit.effect).sum()
        return float(grid[losses.argmin()])

    def _linear(self, X: Array) -> Array:
        return filled(np.asarray(X, dtype=float), self.fill_values_) @ self.coef_ + self.intercept_


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


def _path(X: Array, counts: BagCounts, penalties: Any, effects: bool) -> list[LogitFit]:
    """Fits for decreasing penalties, each started from the previous one."""
    weights, found = np.zeros(X.shape[1]), []
    weights[-1] = counts.start
    for penalty in penalties:
        each = np.r_[np.full(X.shape[1] - 1, penalty), 1e-8]
        found.append(fit_logits(X, counts, each, start=weights, effects=effects))
        weights = found[-1].weights
    return found


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
