"""Partition a table larger than memory: rows in any order become files of whole bags."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from unbag.bags import Bags
from unbag.errors import TableError
from unbag.frames.chunks import Chunk
from unbag.randomness import numpy_generator
from unbag.tables.grouping import grouped
from unbag.tables.index import BagIndex
from unbag.tables.prefetch import prefetch_map
from unbag.tables.scan import BagTable, make_bags_of

__all__ = ["BagParts", "bag_sums", "plan_parts"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Plan:
    """Which part each bag goes to.

    Attributes
    ----------
    part_of : array of shape (n_bags,)
        -1 for bags of no part.
    n_parts : int
    oversized : int or None
        The one part that does not fit in memory: bags that outgrow a part by themselves.
    """

    part_of: Array
    n_parts: int
    oversized: int | None = None


def plan_parts(index: BagIndex, positions: Array, *, rows_per_part: int, seed: int) -> Plan:
    """Assign bags to parts at random, so that all but the oversized part fit in memory.

    A bag of more than a quarter of `rows_per_part` goes to the oversized part. Every part holds at
    least two bags if there are two, because the unbiased rules compare distinct bags.
    """
    order = numpy_generator(seed, "parts").permutation(np.asarray(positions))
    large = index.sizes[order] > rows_per_part / 4
    if large.sum() == 1:
        large[np.flatnonzero(~large)[:1]] = True
    if (~large).sum() == 1:
        large[:] = True
    small, parts = order[~large], np.empty(0, dtype=int)
    if len(small):
        # A bag belongs to the part its last row falls into: at most a quarter over the budget.
        parts = (np.cumsum(index.sizes[small]) - 1) // rows_per_part
        last = parts == parts[-1]
        if last.sum() == 1:
            parts[last] = max(parts[-1] - 1, 0)
    part_of = np.full(index.n_bags, -1)
    part_of[small] = parts
    n_parts = int(parts.max(initial=-1)) + 1
    if not large.any():
        return Plan(part_of, n_parts)
    part_of[order[large]] = n_parts
    return Plan(part_of, n_parts + 1, n_parts)


class BagParts:
    """Encoded rows of some bags on disk, in parts of whole bags; use ``with``, or `close`.

    Parameters
    ----------
    table : BagTable
    groups : mapping from name to positions of bags
        Disjoint sets of bags to keep apart, such as training and held-out ones.
    rows_per_part : int
        Rows of a part, up to half as many again, unless its bags outgrow a part.
    folder : path, optional
        Where the files go; None takes the system's place for temporary files.
    seed : int
        Decides which bags share a part.
    """

    def __init__(
        self,
        table: BagTable,
        groups: dict[str, Array],
        *,
        rows_per_part: int = 250_000,
        folder: str | Path | None = None,
        seed: int = 0,
    ) -> None:
        self.table, self.index = table, table.index
        self.n_features = len(table.encoder.features)
        self.parts: dict[str, list[int]] = {}
        self.oversized: set[int] = set()
        self.part_of = np.full(self.index.n_bags, -1, dtype=np.int32)
        self.rows_per_part = rows_per_part
        for name, positions in groups.items():
            self._add_group(name, positions, seed)
        self._place_bags()
        self._memory = threading.local()
        self._folder = tempfile.TemporaryDirectory(dir=folder, prefix="unbag-")
        try:
            self._write()
        except BaseException:
            self.close()
            raise

    def _add_group(self, name: str, positions: Array, seed: int) -> None:
        plan = plan_parts(self.index, positions, rows_per_part=self.rows_per_part, seed=seed)
        first = self.n_parts
        here = plan.part_of >= 0
        self.part_of[here] = plan.part_of[here] + first
        self.parts[name] = list(range(first, first + plan.n_parts))
        if plan.oversized is not None:
            self.oversized.add(first + plan.oversized)

    def _place_bags(self) -> None:
        """Number the bags of each part."""
        order, ends = grouped(self.part_of + 1, self.n_parts + 1)
        self._positions = np.split(order, ends[1:-1])[1:]  # the first: no part
        self._places = np.empty(self.index.n_bags, dtype=np.int32)
        for positions in self._positions:
            self._places[positions] = np.arange(len(positions))

    @property
    def n_parts(self) -> int:
        """Number of parts of all groups."""
        return sum(map(len, self.parts.values()))

    def _paths(self, part: int) -> tuple[Path, Path]:
        """Files of the features and of the bags of a part's rows."""
        folder = Path(self._folder.name)
        return folder / f"{part}.features", folder / f"{part}.bags"

    def _write(self) -> None:
        """Append the rows of every chunk to the files of their parts."""
        counts = np.zeros(self.n_parts, dtype=np.int64)
        chunks = self.table.source.chunks(self.table.columns)
        for *arrays, ends in prefetch_map(self._by_part, chunks):
            for part, (start, stop) in enumerate(pairwise(ends)):
                for path, rows in zip(self._paths(part), arrays, strict=True):
                    with path.open("ab") as file:
                        file.write(rows[start:stop].data)
            counts += np.diff(ends)
        if any(
            n != self.index.sizes[p].sum() for n, p in zip(counts, self._positions, strict=True)
        ):
            raise TableError("The table changed while it was read: a bag has another size.")

    def _by_part(self, chunk: Chunk) -> tuple[Array, Array, Array]:
        """Features and bags of a chunk in the order of parts, and where those of each part end."""
        columns, features = self._buffers(chunk.batch.num_rows)
        self.table.encoder.encode_into(columns, chunk)
        np.copyto(features, columns)
        codes = self.index.codes(chunk, self.table.roles.bag)
        order, ends = grouped(self.part_of[codes] + 1, self.n_parts + 1)
        return features.take(order, axis=0), codes.take(order), ends[1:]  # before: of no part

    def _buffers(self, n_rows: int) -> tuple[Array, Array]:
        """Reused memory for a chunk, column by column and row by row: fresh pages cost a third."""
        size = n_rows * self.n_features
        if getattr(self._memory, "size", -1) < size:
            self._memory.size, self._memory.arrays = size, np.empty((2, size), dtype=np.float32)
        columns, rows = self._memory.arrays[:, :size]
        shape = n_rows, self.n_features
        return columns.reshape(shape, order="F"), rows.reshape(shape)

    def bags(self, part: int) -> Bags:
        """Whole bags of a part, in memory."""
        [(X, codes)] = self._read(part)
        return self.bags_of(part, X, codes)

    def bags_of(self, part: int, X: Array, codes: Array) -> Bags:
        """Whole bags of a part from all its rows."""
        return make_bags_of(X, self._places[codes], self.index, self._positions[part])

    def rows(self, parts: Sequence[int], *, n_rows: int = 65_536) -> Iterator[tuple[Array, Array]]:
        """Features and bags of the rows of parts, some at a time."""
        for part in parts:
            yield from self._read(part, n_rows)

    def _n_rows(self, part: int) -> int:
        return int(self.index.sizes[self._positions[part]].sum())

    def _read(self, part: int, n_rows: int | None = None) -> Iterator[tuple[Array, Array]]:
        size = self._n_rows(part)
        step = n_rows or size
        features, bags = self._paths(part)
        width = self.n_features
        for first in range(0, size, step):
            n = min(step, size - first)
            X = np.fromfile(features, np.float32, n * width, offset=4 * first * width)
            yield X.reshape(n, width), np.fromfile(bags, np.int32, n, offset=4 * first)

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def __enter__(self) -> BagParts:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def bag_sums(chunks: Iterator[tuple[Array, Array]], n_bags: int, n_features: int) -> Array:
    """Sum of the features of every bag, in double precision, from rows in any order.

    Examples
    --------
    >>> bag_sums(iter([(np.ones((2, 1)), np.array([1, 0])), (np.ones((1, 1)), [1])]), 2, 1)
    array([[1.], [2.]])
    """
    sums = np.zeros((n_bags, n_features))
    for X, codes in chunks:
        order, ends = grouped(codes, n_bags)
        present = np.flatnonzero(np.diff(ends))
        ends = np.append(ends[present], len(order))
        # A sparse product adds rows in place, four times faster than sorting them first.
        shape = len(present), len(order)
        sums[present] += csr_array((np.ones(len(order)), order, ends), shape=shape) @ X
    return sums
