"""`BagKernelClassifier`: smooth functions of the features, in closed form, for few bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unbag.arguments import check_whole
from unbag.bags import Bags
from unbag.bags.holdout import fold_numbers
from unbag.estimators.base import BagEstimator
from unbag.estimators.closed_form import BagStatistics, project_to_simplex
from unbag.estimators.linear import penalty_grid
from unbag.estimators.smooth_features import SmoothFeatures
from unbag.randomness import draw_seed

__all__ = ["BagKernelClassifier"]

Array = NDArray[Any]
CHUNK = 8192  # rows whose columns are in memory at once
N_FOLDS = 8


class BagKernelClassifier(BagEstimator):
    r"""Ridge regression of proportions on the bag means of smooth functions of the features.

    With :math:`z` the columns of `SmoothFeatures`, :math:`B` the covariance of their bag means,
    each times the root of the bag's size :math:`k_i`, and :math:`S` that of all instances, the
    weights are

    .. math:: w = \left[ (1 - \rho) B + \rho S + \lambda I \right]^{-1}
              \frac 1 {n - 1} \sum_i k_i (\bar z_i - \bar z)(a_i - \bar a).

    For random bags :math:`E B = S`. The instances say what :math:`n` bags hardly can: how columns
    vary together. This is what makes it learn from few bags.

    Parameters
    ----------
    penalties : sequence of float, optional
        Values of :math:`\lambda` to choose from, by held-out bags; by default 24 from 1e-5 to 300.
    covariance_share : float
        The share :math:`\rho` of the instances' covariance; 0 is ridge regression.
    n_waves : int
        Random waves; more of them are nearer to a Gaussian kernel.
    random_state : int, RandomState, Generator or None
        Seed of the waves and folds.

    Attributes
    ----------
    features_ : SmoothFeatures
    coef_ : array of shape (n_columns, n_outputs)
        Weights of its columns.
    intercept_ : array of shape (n_outputs,)
    penalty_ : float
        The chosen penalty.
    classes_ : array
        Labels that `predict` gives.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2)); labels = abs(X[:, 0]) > 1
    >>> bags = np.repeat(np.arange(100), 20)
    >>> y = labels.reshape(100, 20).mean(axis=1)[bags]
    >>> clf = BagKernelClassifier(random_state=0).fit(X, y, bags=bags)
    >>> bool((clf.predict(X) == labels).mean() > 0.9)
    True
    """

    def __init__(
        self,
        *,
        penalties: Sequence[float] | None = None,
        covariance_share: float = 0.5,
        n_waves: int = 300,
        random_state: Any = None,
    ) -> None:
        self.penalties = penalties
        self.covariance_share = covariance_share
        self.n_waves = n_waves
        self.random_state = random_state

    def _fit(self, data: Bags) -> Self:
        check_whole("n_waves", self.n_waves, least=1)
        if not 0 <= self.covariance_share <= 1:
            raise ValueError(
                f"covariance_share must be from 0 to 1, got {self.covariance_share!r}."
            )
        grid = np.sort(penalty_grid(self.penalties, np.logspace(-5, 2.5, 24)))
        seed, data = draw_seed(self.random_state), data.gathered()
        self.features_ = SmoothFeatures.of(data.X, n_waves=self.n_waves, seed=seed)
        bags, covariance = column_statistics(self.features_, data)
        errors = self._held_out(bags, covariance, grid, seed)
        self.penalty_ = float(grid[errors.argmin()])
        [self.coef_], self.intercept_ = self._solutions(bags, covariance, [self.penalty_])
        return self

    def _held_out(self, bags: BagStatistics, covariance: Array, grid: Array, seed: int) -> Array:
        """Squared residuals of held-out bags by penalty; of too few bags, the largest is best."""
        n_bags, errors = len(bags.sizes), np.zeros(len(grid))
        folds = fold_numbers(n_bags, N_FOLDS, seed=seed)
        if n_bags < 3:
            return -grid
        for fold in range(folds.max() + 1):
            kept, own = bags.take(folds != fold), bags.take(folds == fold)
            coefficients, intercept = self._solutions(kept, covariance, grid, at=own.means)
            residuals = own.proportions - intercept - coefficients
            errors += (own.weights[:, None] * residuals**2).sum(axis=(1, 2))
        return errors

    def _solutions(
        self, bags: BagStatistics, covariance: Array, grid: Any, at: Array | None = None
    ) -> tuple[Any, Array]:
        """Weights for each penalty, or their products with given rows, and the intercept."""
        weights, n_bags = bags.weights, len(bags.sizes)
        share = weights / weights.sum()
        mean_x, mean_y = share @ bags.means, share @ bags.proportions
        design = np.sqrt(weights)[:, None] * (bags.means - mean_x)
        target = np.sqrt(weights)[:, None] * (bags.proportions - mean_y)
        between = design.T @ design / max(n_bags - 1, 1)
        # Noise takes weight from bags, and so from the covariance of their means.
        known = covariance * (weights / bags.sizes).mean()
        rho = self.covariance_share
        values, vectors = np.linalg.eigh((1 - rho) * between + rho * known)
        rotated = vectors.T @ (design.T @ target / max(n_bags - 1, 1))
        rows = vectors if at is None else (at - mean_x) @ vectors
        scaled = rotated / (np.maximum(values, 0)[:, None] + np.reshape(grid, (-1, 1, 1)))
        found = rows @ scaled
        return found, mean_y - (mean_x @ found[0] if at is None else 0)

    def _linear(self, X: Array) -> Array:
        starts = range(0, len(X), CHUNK)
        return np.concatenate([self.features_(X[i : i + CHUNK]) @ self.coef_ for i in starts])

    def _scores(self, X: Array) -> Array:
        scores = self._linear(X) + self.intercept_
        multiclass = self.task_ == "multiclass"
        return self._by_task(project_to_simplex(scores) if multiclass else np.clip(scores, 0, 1))

    def _learned(self) -> tuple[dict[str, Any], dict[str, Array]]:
        tensors = {f"features_{name}": value for name, value in vars(self.features_).items()}
        tensors |= {"coef": self.coef_, "intercept": self.intercept_}
        return {"penalty": self.penalty_}, tensors

    def _restore(
        self, description: dict[str, Any], tensors: dict[str, Array], folder: Path
    ) -> None:
        self.penalty_ = description["penalty"]
        self.coef_, self.intercept_ = tensors["coef"], tensors["intercept"]
        names = [field.name for field in fields(SmoothFeatures)]
        self.features_ = SmoothFeatures(**{name: tensors[f"features_{name}"] for name in names})


def column_statistics(features: SmoothFeatures, data: Bags) -> tuple[BagStatistics, Array]:
    """Bag means of the columns, and the covariance of the columns over all instances."""
    step, parts = max(1, int(CHUNK / data.sizes.mean())), []
    n_columns = len(features.centre)
    total, products = np.zeros(n_columns), np.zeros((n_columns, n_columns))
    for start in range(0, data.n_bags, step):
        part = data.take(np.arange(start, min(start + step, data.n_bags))).gathered()
        columns = features(part.X)
        total += columns.sum(axis=0)
        products += columns.T @ columns
        parts.append(BagStatistics.of(replace(part, X=columns)))
    mean = total / data.n_instances
    covariance = products / data.n_instances - np.outer(mean, mean)
    return reduce(BagStatistics.joined, parts), covariance
