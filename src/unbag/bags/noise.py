"""Whether noise can be as wide as it is said to be, by the proportions that have it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.errors import BagDataError

__all__ = ["check_noise_shows"]

Array = NDArray[Any]
FALSE_ALARMS = 1e-5
# Narrower noise may not show: proportions may have been rounded to 0 and 1, counts to whole ones.
ROUNDING, FEW_LABELS = 1 / 12, 10


def check_noise_shows(proportions: Array, sizes: Array, variance: Array | None) -> None:
    r"""Refuse a noise variance far beyond what the proportions themselves vary by.

    Notes
    -----
    Let t be the sum of (a_i - m)^2 / v_i over n bags, about the weighted mean m, by n - 1. Noise
    with no higher peak than that of Laplace noise, 1 / sqrt(2 v), has a density of at most
    sqrt(n) 2^{-(n - 1) / 2} across the mean, whatever the labels add to it. Times the volume of a
    ball this bounds the chance of a smaller t by (pi e t)^{(n - 1) / 2}. Noise in whole numbers may
    hide one label of a bag, which is added to the gaps.

    Examples
    --------
    >>> proportions = np.linspace(0.4, 0.6, 30)
    >>> check_noise_shows(proportions, np.full(30, 50), np.full(30, 2 / 50**2))
    >>> check_noise_shows(proportions, np.full(30, 50), np.full(30, 2.0))
    Traceback (most recent call last):
    unbag.errors.BagDataError: noise_variance exceeds the variance of the proportions themselves ...
    """
    if variance is None:
        return
    wide = (variance > ROUNDING) & (variance * sizes**2 > FEW_LABELS)
    n_rest = int(wide.sum()) - 1
    if n_rest < 1:
        return
    values, noise = proportions.reshape(len(sizes), -1)[wide], variance[wide, None]
    gaps = (values - (values / noise).sum(axis=0) / (1 / noise).sum()) ** 2
    shown = ((gaps + 1 / sizes[wide, None] ** 2) / noise).sum(axis=0).max() / n_rest
    if shown < FALSE_ALARMS ** (2 / n_rest) / (np.pi * np.e):
        raise BagDataError(
            "noise_variance exceeds the variance of the proportions themselves "
            f"({noise.mean():.3g} against {gaps.mean():.3g}); is it that of the counts?"
        )
