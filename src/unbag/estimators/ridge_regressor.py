"""`BagRidgeRegressor`: linear regression of amounts from averages of bags, in closed form."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.estimators.closed_form import BagStatistics
from unbag.estimators.linear import RidgeModel
from unbag.estimators.regressor_base import BagRegressorBase

Array = NDArray[Any]


class BagRidgeRegressor(BagRegressorBase, RidgeModel):
    r"""Linear regression of single amounts from averages of bags, in closed form.

    .. math:: \min_{w, b} \frac 1 N \sum_i k_i \left( w^\top \bar x_i + b - a_i \right)^2
              + \lambda u \, \lVert w \rVert^2

    as for `BagRidgeClassifier`, but averages :math:`a_i` and predictions may be any numbers.

    Parameters
    ----------
    penalties : sequence of float, optional
        Candidate values of :math:`\lambda`; by default 60 from 1e-6 to 1e4.
    standardise : bool, optional
        Whether the penalty applies to weights of standardised features. By default only if this
        lowers the error by more than a standard error.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the original features.
    intercept_ : float
    penalty_ : float
        The chosen penalty.
    leave_one_out_ : array of shape (n_penalties,)
        Estimate of the mean squared error of single amounts for each penalty.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); amounts = 5 * X[:, 0] + rng.normal(size=2000)
    >>> bags = np.repeat(np.arange(100), 20)
    >>> y = amounts.reshape(100, 20).mean(axis=1)[bags]
    >>> model = BagRidgeRegressor().fit(X, y, bags=bags)
    >>> bool(model.score(X, amounts) > 0.9)
    True
    """

    def _fit_amounts(self, data: Bags) -> None:
        self._fit_statistics(BagStatistics.of(data))

    def _amounts(self, X: Array) -> Array:
        return self._linear(X)
