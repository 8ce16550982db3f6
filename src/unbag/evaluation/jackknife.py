"""The jackknife over bags or blocks of them, for functions of sums over bags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from unbag.evaluation.estimate import Estimate

__all__ = ["jackknife_estimate"]

Array = NDArray[Any]


def jackknife_estimate(
    function: Callable[[Array], Any],
    sums: Array,
    *,
    confidence: float,
    below_one: bool = False,
    lowest: float = -np.inf,
) -> Estimate:
    r"""Estimate a function of sums, with the interval that leaving out each summand gives (D26).

    The function is taken of ``sums.sum(axis=0)``, for any number of leading axes. With `lowest`
    zero or `below_one` the interval is that of the logarithm of the value, or of one minus the
    value, which are less skewed; if these are not positive, it is that of the value.
    """
    total, n_units = sums.sum(axis=0), len(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.array([function(total), *function(total - sums)])
        logs = np.log(1 - values if below_one else values)
    value, reach = float(values[0]), stats.t.ppf((1 + confidence) / 2, max(n_units - 1, 1))
    bounds = (lowest, 1.0 if below_one else np.inf, n_units, confidence)
    if n_units < 3 or not np.isfinite(values).all():
        reason = "fewer than three bags or blocks" if n_units < 3 else "bags do not differ enough"
        return Estimate(value, np.nan, np.nan, np.nan, *bounds, reason=reason)
    error = float(np.sqrt((n_units - 1) * values[1:].var()))
    low, high = value - reach * error, value + reach * error
    if (below_one or lowest == 0) and np.isfinite(logs).all():
        reach *= np.sqrt((n_units - 1) * logs[1:].var())
        low, high = np.exp(logs[0] - reach), np.exp(logs[0] + reach)
        low, high = (1 - high, 1 - low) if below_one else (low, high)
    return Estimate(value, float(low), float(high), error, *bounds)
