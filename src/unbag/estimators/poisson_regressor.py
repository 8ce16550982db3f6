"""`BagPoissonRegressor`: a log-linear model of rates from the numbers of events of bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.estimators.count_regression import EventCounts
from unbag.estimators.instances import TABLES_WITH_GAPS
from unbag.estimators.linear import LikelihoodModel
from unbag.estimators.regressor_base import BagRegressorBase

Array = NDArray[Any]


@dataclass(eq=False, repr=False)
class BagPoissonRegressor(BagRegressorBase, LikelihoodModel):
    r"""Poisson regression from bags: rates of single instances from numbers of events of bags.

    Instance :math:`j` with exposure :math:`e_j` has a Poisson number of events with mean
    :math:`e_j \exp(w^\top x_j + b)`. The number of a bag, :math:`n_i`, is then Poisson with mean
    :math:`m_i = \sum_j e_j \exp(w^\top x_j + b)`, and the weights maximise

    .. math:: \sum_i \left[ n_i \log m_i - m_i \right] - \frac \lambda 2 \lVert w \rVert^2 .

    The penalty is chosen by the likelihood of held-out bags.

    Parameters
    ----------
    penalties : sequence of float, optional
        Values of :math:`\lambda` to choose from, for columns scaled to unit variance. By default
        ten from 0.3 to 30,000.
    cv : int
        Folds of whole bags that choose the penalty.
    random_state : int, RandomState, Generator or None
        Seed of the folds.

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

    _checks = TABLES_WITH_GAPS
    bag_effects = False

    _: KW_ONLY
    penalties: Sequence[float] | None = None
    cv: int = 4
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _fit_amounts(self, data: Bags) -> None:
        check_events(data)
        self._fit_counts(data, [EventCounts.events(data)])

    def _amounts(self, X: Array) -> Array:
        return np.exp(self._linear(X))


def check_events(data: Bags) -> None:
    """Raise for values that cannot be rates of events."""
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
