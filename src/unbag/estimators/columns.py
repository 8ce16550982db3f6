"""Scale the columns of a table, and fill missing values."""

from __future__ import annotations

import numpy as np

from unbag.arrays import Array


def scaled_columns(X: Array) -> tuple[Array, Array]:
    """Centre and scale of each column: 0/1 columns are unchanged, others get unit variance.

    A column without any value has the centre 0.
    """
    X = np.asarray(X, dtype=float)
    missing = np.isnan(X).all(axis=0)
    if missing.any():
        X = np.where(missing, 0.0, X)
    centre, low, high = np.nanmean(X, axis=0), np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    two = ((low == X) | (high == X) | np.isnan(X)).all(axis=0)
    scale = np.where(two, high - low, np.nanstd(X, axis=0))
    return centre, np.where(scale > 1e-12 * np.abs(centre), scale, 1.0)


def standardised(X: Array, centre: Array, scale: Array) -> Array:
    """Columns in units of `scale`, with missing values at the centre."""
    return np.asarray((filled(np.asarray(X, dtype=float), centre) - centre) / scale)


def filled(X: Array, values: Array) -> Array:
    """Replace missing values."""
    gaps = np.isnan(X)
    return np.where(gaps, values, X) if gaps.any() else X
