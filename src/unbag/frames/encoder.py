"""`TableEncoder`: a transformer from frames to features, fitted to plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unbag.arrays import Array
from unbag.frames.chunks import Chunk, TableInMemory, as_arrow, is_frame, require
from unbag.frames.columns import ColumnScan
from unbag.frames.features import Column

MAX_CATEGORIES = 30
N_BUCKETS = 64


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn the columns of a frame into float32 features.

    Numbers and dates are standardised. A category with few values gets one feature per value, with
    many values hashed features. A missing value becomes the mean and sets an indicator. An unseen
    category has all features zero. IDs and constants are left out.

    Parameters
    ----------
    categories : iterable of str
        Numeric columns to read as categories.
    numbers : iterable of str
        Integer features that look like IDs.
    max_categories : int
        Maximum number of values that get one feature each.
    n_buckets : int
        Features of a column with more values.

    Attributes
    ----------
    columns_ : tuple of Column
        Encoding of each column.

    Examples
    --------
    >>> table = pa.table({"x": [1.0, 3.0, None], "colour": ["red", "blue", "red"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['x', 'x missing', 'colour=blue', 'colour=red']
    >>> encoder.transform(pa.table({"x": [2.0], "colour": ["green"]}))
    array([[0., 0., 0., 0.]], dtype=float32)
    """

    _: KW_ONLY
    categories: Iterable[str] = ()
    numbers: Iterable[str] = ()
    max_categories: int = MAX_CATEGORIES
    n_buckets: int = N_BUCKETS

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Scan all rows once.

        Parameters
        ----------
        X : pandas, polars or pyarrow table, or array
        y : ignored
        """
        source = X if isinstance(X, TableInMemory) else TableInMemory(X)
        require(source.names, [*self.categories, *self.numbers])
        scans = [ColumnScan(n, n in self.categories, n in self.numbers) for n in source.names]
        for chunk in source.chunks():
            for scan in scans:
                scan.add(chunk)
        return self.fit_scans(scans)

    def fit_scans(self, scans: Iterable[ColumnScan]) -> TableEncoder:
        """Decide the use of scanned columns."""
        sizes = self.max_categories, self.n_buckets
        self.columns_ = tuple(Column.of(scan, *sizes) for scan in scans)
        self.n_features_in_ = len(self.columns_)
        self.feature_names_in_ = np.array([column.name for column in self.columns_], dtype=object)
        return self

    @property
    def used(self) -> list[Column]:
        """Columns that have features."""
        check_is_fitted(self)
        return [column for column in self.columns_ if column.used]

    @property
    def names(self) -> list[str]:
        """Names of the columns that have features."""
        return [column.name for column in self.used]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [name for column in self.used for name in column.features]

    @property
    def places(self) -> list[tuple[Column, slice]]:
        """Columns that have features, and the slice of these features."""
        ends = np.cumsum([0, *(len(column.features) for column in self.used)]).tolist()
        return list(zip(self.used, map(slice, ends[:-1], ends[1:]), strict=True))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features, for scikit-learn."""
        return np.array(self.features, dtype=object)

    def transform(self, X: Any) -> Array:
        """Features of a frame, shape (n_rows, n_features)."""
        source = X if isinstance(X, TableInMemory) else TableInMemory(X)
        require(source.names, self.names)
        parts = [self.encode_chunk(chunk) for chunk in source.chunks(self.names)]
        empty = np.empty((0, len(self.features)), dtype=np.float32)
        return np.concatenate([empty, *parts])

    def encode_chunk(self, chunk: Chunk, *, by_column: bool = False) -> Array:
        """Features of a chunk, shape (n_rows, n_features), in memory row by row or by column."""
        require(chunk.batch.schema.names, self.names)
        features = np.empty((chunk.batch.num_rows, len(self.features)), dtype=np.float32, order="F")
        for column, place in self.places:
            column.encode_into(features[:, place], chunk)
        return features if by_column else np.ascontiguousarray(features)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"columns": [asdict(column) for column in self.columns_]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TableEncoder:
        """Read what `to_dict` wrote."""
        encoder, columns = cls(), values["columns"]
        encoder.columns_ = tuple(Column(**c | {"values": tuple(c["values"])}) for c in columns)
        return encoder


def frame_encoder(X: Any) -> TableEncoder | None:
    """An encoder fitted to a frame that holds more than complete numbers, else None."""
    if not is_frame(X):
        return None
    table = as_arrow(X)
    is_number = [pa.types.is_integer(c.type) or pa.types.is_floating(c.type) for c in table.columns]
    complete = not any(c.null_count for c in table.columns)
    return None if complete and all(is_number) else TableEncoder().fit(table)
