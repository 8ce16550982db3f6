"""Partition a table larger than memory: rows in any order become files of whole bags."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
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
from unbag.tables.scan import BagTable, make_bags_of

__all__ = ["BagParts", "bag_sums", "plan_parts", "sums_of_part"]

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
        self._buffer = np.empty((2, 0), dtype=np.float32)
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
        n_rows = [self.index.sizes[positions].sum() for positions in self._positions]
        self._starts = np.append(0, np.cumsum(n_rows, dtype=np.int64))  # rows, part by part

    @property
    def n_parts(self) -> int:
        """Number of parts of all groups."""
        return sum(map(len, self.parts.values()))

    def _path(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def _write(self) -> None:
        """Write the rows of every chunk where those of their parts go."""
        places = self._starts[:-1].copy()
        with self._path("features").open("wb") as features, self._path("bags").open("wb") as bags:
            for chunk in self.table.source.chunks(self.table.columns):
                X, codes, ends = self._by_part(chunk)
                for part in np.flatnonzero(np.diff(ends)):
                    here = slice(ends[part], ends[part + 1])
                    for file, rows in ((features, X[here]), (bags, codes[here])):
                        file.seek(int(places[part]) * rows[:1].nbytes)
                        file.write(rows.data)
                places += np.diff(ends)
        if (places != self._starts[1:]).any():
            raise TableError("The table changed while it was read: a bag has another size.")

    def _by_part(self, chunk: Chunk) -> tuple[Array, Array, Array]:
        """Features and bags of a chunk in the order of parts, and where those of each part end."""
        shape = chunk.batch.num_rows, self.n_features
        size = shape[0] * shape[1]
        if size > self._buffer.shape[1]:  # reused: fresh memory costs as much as the copies
            self._buffer = np.empty((2, size), dtype=np.float32)
        columns, rows = self._buffer[:, :size]
        self.table.encoder.encode_into(columns.reshape(shape, order="F"), chunk)
        np.copyto(rows.reshape(shape), columns.reshape(shape, order="F"))
        codes = self.index.codes(chunk, self.table.roles.bag)
        order, ends = grouped(self.part_of[codes] + 1, self.n_parts + 1)
        # Mode "clip" writes into `out` without a copy; before the first end: rows of no part.
        X = np.take(rows.reshape(shape), order, axis=0, out=columns.reshape(shape), mode="clip")
        return X, codes.take(order), ends[1:]

    def bags(self, part: int) -> Bags:
        """Whole bags of a part, in memory."""
        [(X, codes)] = self._read(part)
        return self.bags_of(part, X, codes)

    def bags_of(self, part: int, X: Array, codes: Array) -> Bags:
        """Whole bags of a part from all its rows."""
        return make_bags_of(X, self._places[codes], self.index, self._positions[part])

    def positions(self, part: int) -> Array:
        """Positions of a part's bags in the index."""
        return self._positions[part]

    def sums(self, part: int) -> Array:
        """Sums of the features of each bag of a part."""
        rows = ((X, self._places[codes]) for X, codes in self.rows([part]))
        return bag_sums(rows, len(self._positions[part]), self.n_features)

    def __getstate__(self) -> dict[str, Any]:
        """For workers that see the same folder; the files stay those of this object."""
        state = self.__dict__ | {"_buffer": np.empty((2, 0), dtype=np.float32)}
        return state | {"_folder": SimpleNamespace(name=self._folder.name, cleanup=int)}

    def rows(self, parts: Sequence[int], *, n_rows: int = 65_536) -> Iterator[tuple[Array, Array]]:
        """Features and bags of the rows of parts, some at a time."""
        for part in parts:
            yield from self._read(part, n_rows)

    def _read(self, part: int, n_rows: int | None = None) -> Iterator[tuple[Array, Array]]:
        first, stop = self._starts[part : part + 2].tolist()
        width, step = self.n_features, n_rows or stop - first
        for start in range(first, stop, step):
            n, offset = min(step, stop - start), 4 * start
            X = np.fromfile(self._path("features"), np.float32, n * width, offset=offset * width)
            yield X.reshape(n, width), np.fromfile(self._path("bags"), np.int32, n, offset=offset)

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def __enter__(self) -> BagParts:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def sums_of_part(parts: BagParts, part: int) -> Array:
    """`BagParts.sums`, as a job."""
    return parts.sums(part)


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
