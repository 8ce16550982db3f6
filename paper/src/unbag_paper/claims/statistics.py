"""Means with standard errors, and slopes with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Slope", "fit_power", "half_point", "mean_and_error"]


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """Mean and its standard error.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    sample = np.asarray(values, dtype=float)
    return float(sample.mean()), float(sample.std(ddof=1) / np.sqrt(sample.size))


@dataclass(frozen=True)
class Slope:
    """Exponent of a power law with its standard error.

    Examples
    --------
    >>> Slope(-0.98, 0.02).near(-1.0, curvature=0.0)
    True
    >>> Slope(-0.90, 0.02).near(-1.0, curvature=0.0)
    False
    >>> str(Slope(-0.98, 0.02))
    '-0.980 ± 0.020'
    """

    value: float
    error: float

    def near(self, target: float, *, curvature: float) -> bool:
        """Whether the target is within 3 standard errors plus what a finite range may bend."""
        return abs(self.value - target) <= 3 * self.error + curvature

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"


def fit_power(x: ArrayLike, y: ArrayLike, errors: ArrayLike) -> Slope:
    """Weighted least-squares slope of log y on log x; `errors` are standard errors of y.

    When the points scatter more than their errors say, the slope's error is scaled up.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 4.0, 8.0])
    >>> round(fit_power(x, 3 / x, 0.03 / x).value, 6)
    -1.0
    """
    log_x, log_y = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    spread = np.maximum(np.asarray(errors, dtype=float) / np.asarray(y, dtype=float), 1e-6)
    weights = 1 / spread**2
    centred = log_x - np.average(log_x, weights=weights)
    scale = np.sum(weights * centred**2)
    slope = np.sum(weights * centred * log_y) / scale
    residual = log_y - np.average(log_y, weights=weights) - slope * centred
    excess = np.sum(weights * residual**2) / max(len(log_x) - 2, 1)
    return Slope(float(slope), float(np.sqrt(max(excess, 1.0) / scale)))


def half_point(numbers: ArrayLike, chances: ArrayLike, level: float = 0.5) -> float:
    """First number at which a rising chance crosses a level, interpolated on a log scale.

    Examples
    --------
    >>> round(half_point([1, 2, 4], [0.0, 0.25, 0.75]), 3)
    2.828
    """
    grid: NDArray[np.float64] = np.asarray(numbers, dtype=float)
    chance = np.maximum.accumulate(np.asarray(chances, dtype=float))
    if chance[-1] < level:
        return float("nan")
    after = int(np.argmax(chance >= level))
    if after == 0:
        return float(grid[0])
    share = (level - chance[after - 1]) / (chance[after] - chance[after - 1])
    return float(grid[after - 1] * (grid[after] / grid[after - 1]) ** share)
