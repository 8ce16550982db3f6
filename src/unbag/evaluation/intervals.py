"""Confidence intervals for a risk, by inverting the distribution of its estimate.

The estimate is a sum over bags of squared residuals, whose spread and skewness follow from the risk
itself. A normal interval ignores both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from unbag.arrays import Array

# D8. Noise of unknown shape is taken for Laplace noise, which has heavier tails than most.
LAPLACE_KURTOSIS = 3.0


@dataclass(frozen=True)
class ResidualMoments:
    """Shape of an instance's residual :math:`e = f - y`, relative to its risk :math:`R = E|e|^2`.

    Traces are of powers of the residuals' covariance, scaled to trace one.
    """

    variance: float = 1.0  # share of the risk that is variance rather than squared mean
    fourth: float = 1.0  # E|e|^4 / R, one for hard predictions of a binary label
    sixth: float = 1.0  # E|e|^6 / R, one for them too
    square_trace: float = 1.0  # one for a binary task
    cube_trace: float = 1.0
    n_outputs: int = 1
    n_labels: int = 1  # of an instance; more than one may be wrong together
    noise_kurtosis: float = LAPLACE_KURTOSIS  # excess, of the noise in the proportions

    def __post_init__(self) -> None:
        if not self.noise_kurtosis >= -2:
            raise ValueError(
                f"noise_kurtosis must be at least -2, as any excess kurtosis is, got "
                f"{self.noise_kurtosis!r}."
            )

    @property
    def highest(self) -> float:
        """Largest possible :math:`|e|^2`: one for each label, two for a wrong class."""
        return self.n_labels * (2.0 if self.n_outputs > self.n_labels else 1.0)


def pearson_quantile(probability: Any, skewness: Any) -> Array:
    """Quantile of the gamma distribution shifted to mean 0 and scaled to variance 1."""
    skewness = np.asarray(skewness, dtype=float)
    tiny = np.abs(skewness) < 1e-3
    safe = np.where(tiny, 1.0, skewness)
    shape = 4 / safe**2
    tail = np.where(safe > 0, probability, 1 - probability)
    gamma = np.sign(safe) * (special.gammaincinv(shape, tail) - shape) / np.sqrt(shape)
    return np.where(tiny, special.ndtri(probability), gamma)


def pearson_tail(value: Any, skewness: Any) -> Array:
    """Upper tail of the distribution of `pearson_quantile`; skewness is at least zero."""
    skewness = np.maximum(np.asarray(skewness, dtype=float), 1e-3)
    shape = 4 / skewness**2
    return np.asarray(special.gammaincc(shape, np.maximum(shape + np.sqrt(shape) * value, 0)))


def square_cumulants(
    law: ResidualMoments, risk: Array, sizes: Array, noise: Array
) -> tuple[Array, Array]:
    """Variance and third cumulant of :math:`k_i |z_i|^2`: a row per risk, a column per bag (D4).

    The third cumulant of the centred residual :math:`z_i` is neglected: it enters squared, and
    vanishes if false positives and negatives balance.
    """
    second = np.asarray(risk)[..., None] * law.variance
    fourth = np.asarray(risk)[..., None] * law.fourth - (1 + 2 * law.square_trace) * second**2
    sixth = np.asarray(risk)[..., None] * law.sixth - 15 * second * fourth - 15 * second**3
    added = sizes * noise
    trace2 = law.square_trace * second**2 + 2 * second * added + law.n_outputs * added**2
    trace3 = law.cube_trace * second**3 + 3 * law.square_trace * second**2 * added
    trace3 = trace3 + 3 * second * added**2 + law.n_outputs * added**3
    kurtosis = fourth / sizes + law.n_outputs * law.noise_kurtosis * added**2
    scale = law.square_trace * second + added
    # D5. A Laplace law has excess kurtosis 3 and sixth cumulant 30, a normal one 0 and 0.
    noise_sixth = law.n_outputs * 30 * (law.noise_kurtosis / 3) ** 2 * added**3
    third = 8 * trace3 + 12 * scale * kurtosis + np.maximum(sixth, 0) / sizes**2 + noise_sixth
    return np.maximum(2 * trace2 + kurtosis, 0), np.maximum(third, 0)


def law_interval(
    value: float, risks: Array, deviation: Array, skewness: Array, confidence: float
) -> tuple[float, float]:
    """Risks for which `value` is not an extreme quantile of the estimate."""
    tail = (1 - confidence) / 2
    low, high = (_inverted(value, risks, deviation, skewness, p) for p in (1 - tail, tail))
    return low, high


def _inverted(
    value: float, risks: Array, deviation: Array, skewness: Array, probability: float
) -> float:
    r"""Risk at which `value` would be the given quantile of its estimate.

    Solves :math:`v = R + \sigma(R) \, q(R)` on an increasing grid of risks, where :math:`q(R)` is
    the gamma quantile (D6); outside the grid, its nearer end. With few errors the quantile need not
    grow with the risk; of several solutions the outer one is taken.
    """
    quantiles = risks + deviation * pearson_quantile(probability, skewness)
    if probability > 0.5:
        after = int(np.argmax(quantiles >= value)) if (quantiles >= value).any() else len(risks)
    else:
        below = np.flatnonzero(quantiles <= value)
        after = int(below[-1]) + 1 if len(below) else 0
    if after in (0, len(risks)):
        return float(risks[min(after, len(risks) - 1)])
    step = (value - quantiles[after - 1]) / (quantiles[after] - quantiles[after - 1])
    return float(risks[after - 1] + step * (risks[after] - risks[after - 1]))
