"""Columns of arrays and frames, with the values of other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.frames.chunks import is_frame, require
from unbag.randomness import numpy_generator

__all__ = ["column_names", "donor_rows", "with_permuted"]

Array = NDArray[Any]


def column_names(X: Any, columns: Any) -> dict[str, list[Any]]:
    """Columns by the names that people know; those of an array are x0, x1 and so on.

    Examples
    --------
    >>> column_names(np.zeros((3, 2)), None)
    {'x0': [0], 'x1': [1]}
    """
    frame = is_frame(X)
    if not frame and np.ndim(X) < 2:
        raise BagDataError(f"X must have columns to permute, got {type(X).__name__}.")
    known: list[Any] = _names(X) if frame else list(range(np.shape(X)[1]))
    if isinstance(columns, Mapping):
        chosen = {str(name): list(places) for name, places in columns.items()}
    else:
        places = known if columns is None else list(columns)
        chosen = {str(place) if frame else f"x{place}": [place] for place in places}
    wanted = [place for places in chosen.values() for place in places]
    if frame:
        require(known, wanted)
    elif outside := [place for place in wanted if place not in known]:
        raise BagDataError(f"columns must be numbers below {len(known)}, got {outside[0]!r}.")
    return chosen


def _names(frame: Any) -> list[Any]:
    return list(getattr(frame, "column_names", None) or frame.columns)


def donor_rows(bags: Bags, n_rows: int, *, seed: int, repeat: int) -> Array:
    """Another row for each row, by one random cycle through all rows of the bags.

    Examples
    --------
    >>> bags = Bags.from_arrays(np.zeros((4, 1)), offsets=[0, 2, 4], counts=[1, 1])
    >>> donors = donor_rows(bags, 4, seed=0, repeat=0)
    >>> sorted(donors.tolist()), bool((donors == np.arange(4)).any())
    ([0, 1, 2, 3], False)
    """
    order = numpy_generator(seed, f"permutation {repeat}").permutation(bags.rows)
    donors = np.arange(n_rows)
    donors[order] = np.roll(order, 1)
    return donors


def with_permuted(X: Any, columns: Sequence[Any], donors: Array) -> Any:
    """A copy whose columns come from other rows; a frame stays of its kind."""
    if hasattr(X, "iloc"):  # pandas
        changed = X.copy()
        for name in columns:
            changed[name] = X[name].iloc[donors].set_axis(X.index)
        return changed
    if hasattr(X, "set_column"):  # Arrow
        for name in columns:
            X = X.set_column(X.column_names.index(name), name, X[name].take(donors))
        return X
    if is_frame(X):  # polars
        return X.with_columns(X[name].gather(donors) for name in columns)
    changed = np.array(X)
    changed[:, columns] = changed[donors][:, columns]
    return changed
