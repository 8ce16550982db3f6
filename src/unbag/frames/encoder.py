"""`TableEncoder`: a transformer from frames to features; what it learns is plain data."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unbag.errors import TableError
from unbag.frames.chunks import Chunk, TableInMemory, as_arrow, is_frame, require
from unbag.frames.columns import READERS, ColumnScan
from unbag.frames.parsing import as_text, refuse_beyond

__all__ = ["Column", "TableEncoder", "frame_encoder"]

Array = NDArray[Any]
MAX_CATEGORIES = 30
N_BUCKETS = 64
DAYS_A_YEAR = 365.2425
# Standard deviations from the mean beyond which single precision has no digits left.
FARTHEST = 1e9


@dataclass(frozen=True)
class Column:
    """How one column becomes features.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "date", "category", "hash", "identifier", "constant"}
        The last two are not used.
    mean, scale : float
        What numbers and dates are standardised by; a missing one becomes the mean.
    missing : bool
        Whether values were missing, in which case a feature says so.
    values : tuple of str
        Categories that have a feature of their own; an unseen one has none.
    n_buckets : int
        Features that the values of a hashed column share.
    has_time : bool
        Whether dates carry a time of the day.
    """

    name: str
    kind: str
    mean: float = 0.0
    scale: float = 1.0
    missing: bool = False
    values: tuple[str, ...] = ()
    n_buckets: int = 0
    has_time: bool = False

    @classmethod
    def of(cls, scan: ColumnScan, *, max_categories: int, n_buckets: int) -> Column:
        """Decide how a scanned column is used."""
        kind, moments = scan.decided(), scan.moments
        missing = moments.missing > 0
        if kind == "category":
            if scan.overflown or len(scan.values) > max_categories:
                return cls(scan.name, "hash", missing=missing, n_buckets=n_buckets)
            return cls(scan.name, kind, missing=missing, values=tuple(sorted(scan.values)))
        scale = 1.0 if kind == "boolean" else float(moments.scale)
        mean = float(moments.mean)
        return cls(scan.name, kind, mean, scale, missing, has_time=scan.has_time)

    @property
    def used(self) -> bool:
        """Whether the column has features."""
        return self.kind not in ("identifier", "constant")

    @property
    def features(self) -> list[str]:
        """Names of its features."""
        if not self.used:
            return []
        names = {
            "category": [f"{self.name}={value}" for value in self.values],
            "hash": [f"{self.name}#{bucket}" for bucket in range(self.n_buckets)],
            "date": [f"{self.name}:{part}" for part in self._date_parts()],
        }.get(self.kind, [self.name])
        return [*names, f"{self.name} missing"] if self.missing else names

    @property
    def use(self) -> str:
        """How it is used, in words."""
        words = {
            "number": "number, standardised",
            "boolean": "yes or no",
            "date": "date: trend, season, weekday" + (", hour" if self.has_time else ""),
            "category": f"category of {len(self.values)} values",
            "hash": f"category of many values, hashed to {self.n_buckets}",
            "identifier": "not used: looks like an id, every value is different",
            "constant": "not used: always the same",
        }
        return words[self.kind] + ("; missing values marked" if self.missing and self.used else "")

    def encode_into(self, features: Array, chunk: Chunk) -> None:
        """Write the features of some rows into an array of shape (n_rows, n_features)."""
        if self.kind in ("category", "hash"):
            self._encode_text(features, as_text(chunk, self.name))
            return
        raw = READERS[self.kind](chunk, self.name)
        self._standardise_into(features[:, 0], raw)
        if self.missing:
            features[:, -1] = np.isnan(raw)
        self._fill_and_check(features[:, 0], raw, chunk)
        if self.kind == "date":
            days = np.where(np.isnan(raw), self.mean, raw)
            for position, wave in enumerate(self._cycles(days), start=1):
                features[:, position] = wave

    def _standardise_into(self, feature: Array, raw: Array) -> None:
        # Beside a mean far from zero, single precision would have few digits left for the rest.
        near = abs(self.mean) <= 16 * self.scale and 1e-30 < self.scale < 1e30
        with np.errstate(over="ignore"):  # what single precision cannot hold is refused
            if raw.dtype == np.float32 and near:
                np.subtract(raw, np.float32(self.mean), out=feature)
                feature *= np.float32(1 / self.scale)
            else:
                feature[:] = (raw - np.float64(self.mean)) * (1 / self.scale)

    def _fill_and_check(self, feature: Array, raw: Array, chunk: Chunk) -> None:
        """Give missing values the mean, and refuse those that are too far from it."""
        low, high = feature.min(initial=0), feature.max(initial=0)
        if np.isnan(low):
            feature[np.isnan(feature)] = 0
            low, high = feature.min(), feature.max()
        if max(-low, high) > FARTHEST:
            refuse_beyond(raw, chunk, self.name)
            place = chunk.at(int(np.argmax(np.abs(feature) > FARTHEST)), self.name)
            raise TableError(f"{place}: the value is too far from those the model has seen.")

    def _date_parts(self) -> list[str]:
        cycles = ["year", "week", "day"][: 3 if self.has_time else 2]
        return ["trend", *(f"{wave} of {cycle}" for cycle in cycles for wave in ("sin", "cos"))]

    def _cycles(self, days: Array) -> list[Array]:
        periods = [DAYS_A_YEAR, 7.0, 1.0][: 3 if self.has_time else 2]
        angles = [2 * np.pi * days / period for period in periods]
        return [wave(angle) for angle in angles for wave in (np.sin, np.cos)]

    def _encode_text(self, features: Array, text: pa.Array) -> None:
        features[:] = 0
        positions = self._positions(text)
        rows = np.flatnonzero(positions >= 0)
        features[rows, positions[rows]] = 1
        if self.missing:
            features[:, -1] = text.is_null().to_numpy(zero_copy_only=False)

    def _positions(self, text: pa.Array) -> Array:
        """Feature of each value, or -1."""
        if self.kind == "category":
            known = pc.index_in(text, value_set=pa.array(self.values, pa.string()))
            return pc.fill_null(known, -1).to_numpy(zero_copy_only=False)
        encoded = text.dictionary_encode()
        # A hash that is the same on every machine, unlike Python's own.
        buckets = [zlib.crc32(v.encode()) % self.n_buckets for v in encoded.dictionary.to_pylist()]
        codes = pc.fill_null(encoded.indices, len(buckets)).to_numpy(zero_copy_only=False)
        return np.array([*buckets, -1])[codes]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn the columns of a frame into float32 features.

    Numbers and dates are standardised. A category of few values gets a feature per value, one of
    many values shares hashed features. A missing value becomes the mean and sets a feature that
    says so; an unseen category has all features zero. Identifiers and constants are left out.

    Parameters
    ----------
    categories : iterable of str
        Columns of numbers to read as categories.
    numbers : iterable of str
        Columns of integers to use though they look like IDs.
    max_categories : int
        Most values that get a feature each.
    n_buckets : int
        Features of a column with more values than that.

    Attributes
    ----------
    columns_ : tuple of Column
        How each column becomes features.

    Examples
    --------
    >>> table = pa.table({"x": [1.0, 3.0, None], "colour": ["red", "blue", "red"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['x', 'x missing', 'colour=blue', 'colour=red']
    >>> encoder.transform(pa.table({"x": [2.0], "colour": ["green"]}))
    array([[0., 0., 0., 0.]], dtype=float32)
    """

    columns_: tuple[Column, ...]

    def __init__(
        self,
        *,
        categories: Iterable[str] = (),
        numbers: Iterable[str] = (),
        max_categories: int = MAX_CATEGORIES,
        n_buckets: int = N_BUCKETS,
    ) -> None:
        self.categories, self.numbers = categories, numbers
        self.max_categories, self.n_buckets = max_categories, n_buckets

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
        """Decide how columns are used that were scanned before."""
        options = {"max_categories": self.max_categories, "n_buckets": self.n_buckets}
        self.columns_ = tuple(Column.of(scan, **options) for scan in scans)
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

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features, as scikit-learn asks for them."""
        return np.array(self.features, dtype=object)

    def transform(self, X: Any) -> Array:
        """Features of a frame, shape (n_rows, n_features)."""
        source = X if isinstance(X, TableInMemory) else TableInMemory(X)
        require(source.names, self.names)
        parts = [self.encode_chunk(chunk) for chunk in source.chunks(self.names)]
        empty = np.empty((0, len(self.features)), dtype=np.float32)
        return np.concatenate([empty, *parts])

    def encode_chunk(self, chunk: Chunk) -> Array:
        """Features of a chunk, shape (n_rows, n_features)."""
        features = np.empty((chunk.batch.num_rows, len(self.features)), dtype=np.float32, order="F")
        self.encode_into(features, chunk)
        return np.ascontiguousarray(features)

    def encode_into(self, features: Array, chunk: Chunk) -> None:
        """Write the features of a chunk into an array of that shape, fastest in Fortran order."""
        require(chunk.batch.schema.names, self.names)
        start = 0
        for column in self.used:
            stop = start + len(column.features)
            column.encode_into(features[:, start:stop], chunk)
            start = stop

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"columns": [asdict(column) for column in self.columns_]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TableEncoder:
        """Read what `to_dict` wrote."""
        encoder = cls()
        columns = [Column(**c | {"values": tuple(c["values"])}) for c in values["columns"]]
        encoder.columns_ = tuple(columns)
        return encoder


def frame_encoder(X: Any) -> TableEncoder | None:
    """An encoder fitted to a frame that holds more than numbers, and None for anything else.

    Examples
    --------
    >>> frame_encoder(pa.table({"x": [1.0, 2.0]})) is None, frame_encoder(np.ones((2, 2))) is None
    (True, True)
    >>> frame_encoder(pa.table({"x": [1.0, None]})).features
    ['x', 'x missing']
    """
    if not is_frame(X):
        return None
    table = as_arrow(X)
    kinds = (pa.types.is_integer, pa.types.is_floating)
    plain = all(
        any(is_kind(column.type) for is_kind in kinds) and not column.null_count
        for column in table.columns
    )
    return None if plain else TableEncoder().fit(table)
