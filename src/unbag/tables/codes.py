"""Identifiers as whole numbers, looked up without starting anew for every chunk."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array

__all__ = [
    "Codebook",
    "IntegerCodes",
    "RangeCodes",
    "TextCodes",
    "codebook_for",
    "grouped",
    "grown",
    "runs",
]

Array = NDArray[Any]
# 2**64 divided by the golden ratio: multiples of it are spread evenly over the slots.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Codebook(Protocol):
    """Numbers identifiers from 0 in the order they are met."""

    @property
    def ids(self) -> pa.Array:
        """Those met so far; the code of each is its position."""

    def add(self, ids: pa.Array) -> Array:
        """Codes of identifiers; unseen ones get the next codes."""

    def find(self, ids: pa.Array) -> Array:
        """Codes of identifiers, -1 for unseen ones."""


def codebook_for(kind: pa.DataType) -> Codebook:
    """An empty codebook for identifiers of an Arrow type."""
    return IntegerCodes() if pa.types.is_integer(kind) else TextCodes()


class IntegerCodes:
    """Codes of integers: a table of those between the ends, or if they lie far apart, of hashes.

    The hash table has open addressing, and is probed for all rows at once.

    Examples
    --------
    >>> codes = IntegerCodes()
    >>> codes.add(pa.array([70, -3, 70]))
    array([1, 0, 1], dtype=int32)
    >>> codes.find(pa.array([-3, 5]))
    array([ 0, -1], dtype=int32)
    """

    def __init__(self) -> None:
        self._known = np.zeros(1, dtype=np.int64)
        self._n_known = 0
        self._range: RangeCodes | None = None
        self._make_slots(10)

    @property
    def ids(self) -> pa.Array:
        """Those met so far; the code of each is its position."""
        return pa.array(self._known[: self._n_known])

    def add(self, ids: pa.Array) -> Array:
        """Codes of identifiers; unseen ones get the next codes."""
        keys = ids.to_numpy()
        codes = self._probe(keys)
        unseen = codes < 0
        if unseen.any():
            self._append(runs(np.sort(keys[unseen]))[0])
            codes[unseen] = self._probe(keys[unseen])
        return codes

    def find(self, ids: pa.Array) -> Array:
        """Codes of identifiers, -1 for unseen ones."""
        return self._probe(ids.to_numpy())

    def _make_slots(self, bits: int) -> None:
        self._shift, self._last = np.uint64(64 - bits), (1 << bits) - 1
        self._codes = np.full(1 << bits, -1, dtype=np.int32)

    def _first_slots(self, keys: Array) -> Array:
        slots = keys.view(np.uint64) * SPREAD
        slots >>= self._shift
        return slots.view(np.int64)

    def _probe(self, keys: Array) -> Array:
        if self._range is not None:
            return self._range.find(keys)
        slots = self._first_slots(keys)
        codes = self._codes[slots]
        rows = np.flatnonzero(self._known[codes] != keys)
        rows = rows[codes[rows] >= 0]
        while len(rows):  # those whose slot another key has taken go on to the next one
            slots[rows] = (slots[rows] + 1) & self._last
            codes[rows] = found = self._codes[slots[rows]]
            rows = rows[(found >= 0) & (self._known[found] != keys[rows])]
        return codes

    def _append(self, keys: Array) -> None:
        start, stop = self._n_known, self._n_known + len(keys)
        self._known = grown(self._known, stop, 0)
        self._known[start:stop] = keys
        self._n_known = stop
        was_range, self._range = self._range, RangeCodes.of(self._known[:stop])
        if self._range is not None:
            return
        if was_range is not None or 2 * stop > len(self._codes):
            self._make_slots(int(np.ceil(np.log2(4 * stop))))
            start = 0
        self._insert(self._known[start:stop], np.arange(start, stop, dtype=np.int32))

    def _insert(self, keys: Array, codes: Array) -> None:
        slots = self._first_slots(keys)
        while len(codes):
            free = self._codes[slots] < 0
            self._codes[slots[free]] = codes[free]  # of several the last one written has it
            lost = self._codes[slots] != codes
            codes, slots = codes[lost], (slots[lost] + 1) & self._last


class RangeCodes:
    """Positions of distinct integers, in a table with a place for all between the ends.

    Examples
    --------
    >>> RangeCodes.of(np.array([-1, -3, 4])).find(np.array([4, -3, -2, 1 << 60]))
    array([ 2,  1, -1, -1], dtype=int32)
    >>> RangeCodes.of(np.array([0, 1 << 60])) is None  # the table would be too large
    True
    """

    def __init__(self, keys: Array, low: int, width: int) -> None:
        self._low, self._width = low, width
        self._codes = np.full(width + 1, -1, dtype=np.int32)
        self._codes[keys - low] = np.arange(len(keys))

    @classmethod
    def of(cls, keys: Array) -> RangeCodes | None:
        """None if they lie too far apart."""
        low = int(keys.min())
        width = int(keys.max()) - low + 1
        return cls(keys, low, width) if width <= 16 * len(keys) else None

    def find(self, keys: Array) -> Array:
        """Positions of integers, -1 for others."""
        # Without a sign, an integer below the range is one far above it.
        places = (keys - self._low).view(np.uint64)
        return self._codes[np.minimum(places, np.uint64(self._width))]


class TextCodes:
    """Codes of strings.

    Examples
    --------
    >>> codes = TextCodes()
    >>> codes.add(pa.array(["b", "a", "b"])), codes.find(pa.array(["a", "c"]))
    (array([0, 1, 0], dtype=int32), array([ 1, -1], dtype=int32))
    """

    def __init__(self) -> None:
        self.ids = pa.array([], pa.string())

    def add(self, ids: pa.Array) -> Array:
        """Codes of identifiers; unseen ones get the next codes."""
        codes = self.find(ids)
        if (codes < 0).any():
            unseen = ids.filter(pa.array(codes < 0)).unique()
            self.ids = pa.concat_arrays([self.ids, unseen])
            codes = self.find(ids)
        return codes

    def find(self, ids: pa.Array) -> Array:
        """Codes of identifiers, -1 for unseen ones."""
        found = pc.index_in(ids, value_set=self.ids)
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False)


def grown(values: Array, n: int, fill: float) -> Array:
    """An array of at least `n` values, at most twice as many: growing it costs little in all."""
    if len(values) >= n:
        return values
    longer = np.full(max(n, 2 * len(values)), fill, dtype=values.dtype)
    longer[: len(values)] = values
    return longer


def grouped(groups: Array, n_groups: int) -> tuple[Array, Array]:
    """Rows in the order of their groups, equal ones as they came, and the ends of the groups.

    The groups are numbered from 0: a sparse matrix with one of them in each row is turned to
    columns by counting, several times faster than by sorting.

    Examples
    --------
    >>> rows, ends = grouped(np.array([3, 0, 3, 1], dtype=np.int32), 4)
    >>> rows, ends
    (array([1, 3, 0, 2]), array([0, 1, 2, 2, 4], dtype=int32))
    """
    n_rows = len(groups)
    here = np.empty(n_rows, dtype=np.int8), groups, np.arange(n_rows + 1, dtype=np.int32)
    columns = csr_array(here, shape=(n_rows, n_groups)).tocsc()
    return columns.indices.astype(np.intp), columns.indptr


def runs(codes: Array) -> tuple[Array, Array]:
    """Codes that come in sorted ones, and how often each.

    Examples
    --------
    >>> runs(np.array([3, 3, 7]))
    (array([3, 7]), array([2, 1]))
    """
    first = np.ones(len(codes), dtype=bool)
    first[1:] = codes[1:] != codes[:-1]
    starts = np.flatnonzero(first)
    return codes[starts], np.diff(starts, append=len(codes))
