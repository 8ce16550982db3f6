"""Warn about columns that repeat what is known of bags: their labels, or their IDs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unbag.bags import Bags
from unbag.errors import BagDataWarning
from unbag.frames import TableEncoder
from unbag.frames.chunks import is_frame

SAME = 1e-9  # share of a column's variance that is not explained


def warn_of_leaks(X: Any, data: Bags, encoder: TableEncoder | None) -> None:
    """Warn if columns of `X` follow the averages or counts of the bags, or copy their IDs."""
    if data.X.ndim != 2 or data.n_bags == data.n_instances:
        return
    columns = getattr(X, "column_names", getattr(X, "columns", range(data.X.shape[1])))
    names = columns if encoder is None else encoder.features
    for name in _linear_in_labels(data, names):
        _warn(
            f"Column {name!r} of X follows the averages or counts of the bags exactly. A model "
            "reads them off it and learns little about single instances."
        )
    for name in _copies_of_ids(X, data, columns) if is_frame(X) else ():
        _warn(f"Column {name!r} of X is a copy of the bag IDs, by which a model memorises bags.")


def _linear_in_labels(data: Bags, names: Sequence[Any]) -> Iterator[Any]:
    """Columns with one value per bag that is a linear function of its averages or counts."""
    shares = data.proportions.reshape(data.n_bags, -1)
    sizes = data.sizes[:, None]
    values = data.X[data.rows[data.starts]].astype(float)
    values = values - values.mean(axis=0)
    found = np.zeros(len(names), bool)
    for quantity in np.hstack([shares, shares * sizes, (1 - shares) * sizes]).T:
        if len(np.unique(quantity)) > 2:  # any two values are a linear function of two others
            gaps = quantity - quantity.mean()
            with np.errstate(all="ignore"):
                explained = (gaps @ values) ** 2 / (gaps @ gaps * (values**2).sum(axis=0))
            found |= explained > 1 - SAME
    for column in np.flatnonzero(found).tolist():
        feature = data.X[data.rows, column]
        if (feature == np.repeat(feature[data.starts], data.sizes)).all():
            yield names[column]


def _copies_of_ids(X: Any, data: Bags, columns: Sequence[Any]) -> Iterator[Any]:
    ids, own = np.array([str(bag) for bag in data.ids]), data.bag_of_row
    for name in columns:
        first = np.asarray(X[name][:1]).astype(str)  # rules out most columns
        if first == ids[own[0]] and (np.asarray(X[name]).astype(str) == ids[own]).all():
            yield name


def _warn(what: str) -> None:
    warnings.warn(f"{what} Leave it out of X.", BagDataWarning, stacklevel=5)
