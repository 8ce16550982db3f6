"""What the ridge classifier and the ridge regressor share: one closed form, chosen penalty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unbag.estimators.closed_form import BagStatistics, RidgeSolution
from unbag.estimators.instances import InstanceEstimator
from unbag.estimators.saving import read_folder, write_folder

__all__ = ["RidgeModel"]

Array = NDArray[Any]


class RidgeModel(InstanceEstimator):
    """Linear scores fitted to bag means, with the penalty of the best leave-one-bag-out error."""

    _statistics: BagStatistics

    def __init__(
        self, *, penalties: Sequence[float] | None = None, standardise: bool | None = None
    ) -> None:
        self.penalties = penalties
        self.standardise = standardise

    def _fit_statistics(self, statistics: BagStatistics) -> Self:
        self._statistics = statistics
        return self._solve()

    def _solve(self) -> Self:
        self._statistics.check()
        grid = np.logspace(-6, 4, 60) if self.penalties is None else np.asarray(self.penalties)
        if grid.ndim != 1 or len(grid) == 0 or not (np.isfinite(grid) & (grid >= 0)).all():
            raise ValueError(
                f"penalties must be a sequence of non-negative numbers, got {self.penalties!r}."
            )
        # Features in common units are better left alone, features in units of their own are not.
        found = []
        for standardise in (False, True) if self.standardise is None else (self.standardise,):
            solution = RidgeSolution(self._statistics, standardise=standardise)
            found.append((np.array([solution.leave_one_out(p) for p in grid]), solution))
        self.leave_one_out_, solution = min(found, key=lambda errors: errors[0].min())
        self.penalty_ = float(grid[self.leave_one_out_.argmin()])
        coefficients, intercept = solution.coefficients(self.penalty_)
        single = self.task_ in ("binary", "amount")
        self.coef_ = coefficients[:, 0] if single else coefficients
        self.intercept_ = float(intercept[0]) if single else intercept
        return self

    def _linear(self, X: Array, n_rows: int = 8192) -> Array:
        """Linear scores, so few rows at a time that those turned to doubles stay in the cache."""
        starts = range(0, len(X), n_rows)
        products = [X[start : start + n_rows] @ self.coef_ for start in starts]
        return np.concatenate(products) + self.intercept_

    def save(self, folder: str | Path) -> Path:
        """Write `model.safetensors` and `model.json` into a folder."""
        description = self._description() | {"penalty": self.penalty_}
        tensors = {
            "coef": np.asarray(self.coef_, dtype=float),
            "intercept": np.atleast_1d(np.asarray(self.intercept_, dtype=float)),
            "leave_one_out": self.leave_one_out_,
        }
        return write_folder(folder, description, tensors)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a folder written by `save`; such a model predicts but cannot be fitted further."""
        description, tensors = read_folder(folder, kind=cls.__name__)
        model = cls._described(description)
        model.penalty_ = description["penalty"]
        model.coef_ = tensors["coef"]
        single = model.task_ in ("binary", "amount")
        model.intercept_ = float(tensors["intercept"][0]) if single else tensors["intercept"]
        model.leave_one_out_ = tensors["leave_one_out"]
        return model
