"""Columns in which smooth functions of the features are linear: values, steps and waves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unbag.arrays import Array
from unbag.estimators.columns import scaled_columns
from unbag.randomness import numpy_generator

# Steps of a column with many values, of all columns, and rows that place them.
N_STEPS, MAX_STEPS, MAX_ROWS = 7, 700, 50_000
# A column of fewer values is left as it is.
MIN_VALUES = 5


@dataclass(frozen=True, eq=False)
class SmoothFeatures:
    r"""Three blocks of columns: scaled features, steps at their quantiles, and random waves.

    A wave is :math:`\cos(w^\top x + b)` with Gaussian :math:`w` and uniform :math:`b`: many of
    them have the inner products of a Gaussian kernel, whose width is the deviation of the
    instances. Every block has a total variance of one.

    Attributes
    ----------
    directions : array of shape (n_features, n_waves)
    phases : array of shape (n_waves,)
    columns, thresholds : array of shape (n_steps,)
        Feature of each step, and where it rises.
    centre, factor : array of shape (n_columns,)
        What is taken off all three blocks, and what they are multiplied by after that.

    References
    ----------
    rahimi2007random
    """

    directions: Array
    phases: Array
    columns: Array
    thresholds: Array
    centre: Array
    factor: Array

    @classmethod
    def of(cls, X: Array, *, n_waves: int, seed: int) -> Self:
        """Place steps and waves by the instances, at most 50,000 of them."""
        rng = numpy_generator(seed, "waves")
        if len(X) > MAX_ROWS:
            X = X[np.sort(rng.choice(len(X), MAX_ROWS, replace=False))]
        X = np.asarray(X, dtype=float)
        middle, scale = scaled_columns(X)
        width = np.sqrt(max((X / scale).var(axis=0).sum(), 1e-12))
        directions = rng.normal(size=(X.shape[1], n_waves)) / (scale[:, None] * width)
        phases = rng.uniform(0, 2 * np.pi, n_waves)
        return cls(directions, phases, *_steps(X), middle, scale)._scaled(X, scale)

    def _scaled(self, X: Array, scale: Array) -> Self:
        """The same with every block centred and of unit variance, by these rows."""
        values, steps, waves = self._raw(X)
        centres = [self.centre, steps.mean(axis=0), waves.mean(axis=0, dtype=float)]
        # A step is zero or one, so its mean tells its variance.
        variances = [values.var(axis=0, dtype=float), centres[1] * (1 - centres[1])]
        variances.append(waves.var(axis=0, dtype=float))
        factors = [1 / scale, np.ones(len(self.columns)), np.ones(len(self.phases))]
        for variance, factor in zip(variances, factors, strict=True):
            factor /= np.sqrt(max((variance * factor**2).sum(), 1e-12))
        parts = self.directions, self.phases, self.columns, self.thresholds
        return type(self)(*parts, np.concatenate(centres), np.concatenate(factors))

    def _raw(self, X: Array) -> tuple[Array, Array, Array]:
        centre = self.centre[: X.shape[1]]
        values: Array = (X - centre).astype(np.float32)
        steps = values[:, self.columns] > np.float32(self.thresholds - centre[self.columns])
        # Products in double precision: with single ones, a row's wave would depend on other rows.
        angles = (X - centre) @ self.directions + self.phases
        return values, steps, np.cos(angles.astype(np.float32))

    @property
    def blocks(self) -> Array:
        """Block of each column: 0 for features, 1 for steps, 2 for waves."""
        sizes = [len(self.directions), len(self.columns), len(self.phases)]
        return np.repeat(np.arange(3), sizes)

    def __call__(self, X: Array) -> Array:
        """Columns of shape (n_instances, n_columns), in single precision."""
        X = np.asarray(X, dtype=float)
        columns: Array = np.concatenate(self._raw(X), axis=1, dtype=np.float32)
        columns[:, X.shape[1] :] -= np.float32(self.centre[X.shape[1] :])
        columns *= np.float32(self.factor)
        return columns


def _steps(X: Array) -> tuple[Array, Array]:
    """Features and thresholds: inner quantiles of columns with many values."""
    many = [j for j, column in enumerate(X.T) if len(np.unique(column)) >= MIN_VALUES]
    n_steps = min(N_STEPS, MAX_STEPS // max(len(many), 1))
    levels = np.linspace(0, 1, n_steps + 2)[1:-1]
    cuts = [np.unique(np.quantile(X[:, j], levels)) for j in many] if n_steps else []
    columns = np.repeat(many[: len(cuts)], [len(own) for own in cuts]).astype(int)
    return columns, np.concatenate([*cuts, np.empty(0)])
