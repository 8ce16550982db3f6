"""The debiased square loss in closed form for linear models, of labels and of amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from unbag.arguments import check_whole
from unbag.arrays import Array
from unbag.bags import Bags, Task
from unbag.bags.validation import check_proportions_differ
from unbag.estimators.base import BagEstimator
from unbag.estimators.closed_form import (
    CHUNK,
    BagStatistics,
    RidgeSolution,
    check_reports,
    check_sizes,
    joint_statistics,
    principal_directions,
    project_to_simplex,
)
from unbag.estimators.instances import LinearEstimator, penalty_grid
from unbag.estimators.regressor_base import BagRegressorBase


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeModel(LinearEstimator):
    """Linear scores fitted to bag means, with the penalty chosen by leave-one-bag-out."""

    _state: ClassVar[tuple[str, ...]] = ("coef", "intercept", "penalty", "leave_one_out")
    n_components = None  # type: Any

    penalties: Sequence[float] | None = None
    standardise: bool | None = None

    def fit_bags(self, data: Bags | Sequence[Bags]) -> Self:
        """Fit to a `Bags`, or to several reports about the same rows with overlapping bags.

        Parameters
        ----------
        data : Bags, or sequence of Bags with one `X`
            A row may be in one bag of each report. Generalised least squares accounts for the
            correlation of averages that share rows. Reports that contradict each other need a noise
            variance. Thousands of bags take some seconds.
        """
        if isinstance(data, Bags):
            return super().fit_bags(data)
        self._refuse_components("several reports")
        first = check_reports(data)
        self._adopt(first.task, first.n_outputs, first.X.shape[1])
        return self._fit_statistics(joint_statistics(data))

    def _refuse_components(self, method: str) -> None:
        if self.n_components is not None:
            raise ValueError(
                f"n_components must be None for {method}, got {self.n_components!r}. Use fit, or "
                "transform the features first."
            )

    def _fit_statistics(self, statistics: BagStatistics) -> Self:
        self._statistics = statistics
        self.leave_one_out_, self.penalty_, *weights = self._best(statistics)
        self._set_weights(*weights)
        return self

    def _best(self, statistics: BagStatistics) -> tuple[Array, float, Array, Array]:
        """Error of each penalty, and the best penalty with its weights and intercept."""
        check_sizes(statistics.means)
        grid = penalty_grid(self.penalties, np.logspace(-6, 4, 60))
        # Features in common units are better left alone, features in units of their own are not. An
        # error from n bags has a relative standard error of sqrt(2/n); less than that is chance.
        found = []
        for standardise in (False, True) if self.standardise is None else (self.standardise,):
            solution = RidgeSolution(statistics, standardise=standardise)
            found.append((np.array([solution.leave_one_out(p) for p in grid]), solution))
        errors, solution = found[0]
        chance = np.sqrt(2 / len(statistics.sizes)) * abs(errors.min())
        if found[-1][0].min() < errors.min() - chance:
            errors, solution = found[-1]
        penalty = float(grid[errors.argmin()])
        return errors, penalty, *solution.coefficients(penalty)

    def _linear(self, X: Array) -> Array:
        """Linear scores in chunks of rows that stay in the cache as doubles."""
        products = [X[i : i + CHUNK] @ self.coef_ for i in range(0, len(X), CHUNK)]
        return np.concatenate(products) + self.intercept_


@dataclass(eq=False, repr=False, kw_only=True)
class BagRidgeClassifier(BagEstimator, RidgeModel):
    r"""Linear classifier from bags, in closed form, with its penalty chosen without labels.

    For scores :math:`f(x) = w^\top x + b` the debiased square loss with a ridge penalty is a
    ridge regression of proportions on bag means, weighted by bag size :math:`k_i`:

    .. math:: \min_{w, b} \frac 1 N \sum_i k_i \left( w^\top \bar x_i + b - a_i \right)^2
              + \lambda u \, \lVert w \rVert^2

    with :math:`u` the mean eigenvalue of the bag means' covariance. The leave-one-bag-out error
    :math:`r_i / (1 - h_{ii})` is exact and costs nothing, so :math:`\lambda` is the best of a fine
    grid.

    Parameters
    ----------
    penalties : sequence of float, optional
        Candidate values of :math:`\lambda`; by default 60 from 1e-6 to 1e4.
    standardise : bool, optional
        Whether the penalty applies to weights of standardised features. By default only if this
        lowers the error by more than a standard error.
    n_components : int or "auto", optional
        Number of principal components to fit, for many features such as those of a pretrained net.
        "auto" takes the best of 4, 8, 16, ... and all, by leave-one-bag-out.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_features, n_outputs)
        Weights of the original features.
    intercept_ : float or array of shape (n_outputs,)
        Score of an instance whose features are all zero.
    penalty_ : float
        The chosen penalty.
    n_components_ : int
        The chosen number of principal components, if any.
    leave_one_out_ : array of shape (n_penalties,)
        Estimate of the instance square loss for each penalty: the mean of :math:`k_i r_{i,-i}^2`,
        minus known noise; noisy bags have less weight.
    classes_ : array
        Class labels.

    Notes
    -----
    A fit takes milliseconds; try it first on a table. A `Pipeline` with a transformer (Nystroem,
    splines, one-hot) makes it nonlinear.

    References
    ----------
    li2024optimistic

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); labels = X[:, 0] > 0
    >>> bags = np.repeat(np.arange(100), 20)
    >>> y = labels.reshape(100, 20).mean(axis=1)[bags]
    >>> clf = BagRidgeClassifier().fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.95)
    True
    """

    _state = (*RidgeModel._state, "n_components")
    n_components_ = None  # type: int | None

    n_components: int | Literal["auto"] | None = None

    def _fit(self, data: Bags) -> Self:
        statistics = BagStatistics.of(data)
        if self.n_components is None:
            self.n_components_ = None
            return self._fit_statistics(statistics)
        directions = principal_directions(data.X[data.rows])
        found = {
            n: self._best(statistics.along(directions[:, :n]))
            for n in self._numbers_of_components(data.X.shape[1])
        }
        n = self.n_components_ = min(found, key=lambda number: found[number][0].min())
        self.leave_one_out_, self.penalty_, weights, intercept = found[n]
        self._set_weights(directions[:, :n] @ weights, intercept)
        return self

    def _numbers_of_components(self, n_features: int) -> list[int]:
        wanted = self.n_components
        if wanted == "auto":
            return [2**power for power in range(2, 20) if 2**power < n_features] + [n_features]
        check_whole("n_components", wanted)
        return [min(int(wanted), n_features)]  # type: ignore[arg-type]

    def fit_means(
        self,
        means: Any,
        proportions: Any,
        sizes: Any,
        *,
        noise_variance: Any = None,
        task: Task = "binary",
    ) -> Self:
        """Fit to means of bags; no instance is needed.

        Parameters
        ----------
        means : array of shape (n_bags, n_features)
            Mean of each bag's instances.
        proportions : array of shape (n_bags,) or (n_bags, n_outputs)
        sizes : array of shape (n_bags,)
        noise_variance : float or array of shape (n_bags,), optional
        task : {"binary", "multiclass", "multilabel"}

        Examples
        --------
        >>> means = np.array([[0.0], [1.0], [0.5]])
        >>> clf = BagRidgeClassifier(penalties=[0.0])
        >>> round(float(clf.fit_means(means, [0.0, 1.0, 0.5], [9, 9, 9]).coef_[0]), 3)
        1.0
        """
        self._refuse_components("fit_means")
        means = np.asarray(means, dtype=float)
        values = np.asarray(proportions, dtype=float).reshape(len(means), -1)
        check_proportions_differ(values)
        given = 0.0 if noise_variance is None else noise_variance
        noise = np.broadcast_to(np.asarray(given, dtype=float), len(means))
        self._adopt(task, values.shape[1], means.shape[1])
        return self._fit_statistics(
            BagStatistics(means, values, np.asarray(sizes, dtype=float), noise)
        )

    def _scores(self, X: Array) -> Array:
        scores = self._linear(X)
        return project_to_simplex(scores) if self.task_ == "multiclass" else np.clip(scores, 0, 1)


class BagRidgeRegressor(BagRegressorBase, RidgeModel):
    r"""Linear regression of single amounts from averages of bags, in closed form.

    .. math:: \min_{w, b} \frac 1 N \sum_i k_i \left( w^\top \bar x_i + b - a_i \right)^2
              + \lambda u \, \lVert w \rVert^2

    as for `BagRidgeClassifier`, but averages :math:`a_i` and predictions may be any numbers.

    Parameters
    ----------
    penalties, standardise
        As for `BagRidgeClassifier`.

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

    def _scores(self, X: Array) -> Array:
        return self._linear(X)
