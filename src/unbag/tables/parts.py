"""Partition a table larger than memory: rows in any order become files of whole bags."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.errors import TableError
from unbag.frames.chunks import Chunk
from unbag.randomness import numpy_generator
from unbag.tables.grouping import grouped
from unbag.tables.scan import BagTable, make_bags_of


def plan_parts(
    sizes: Array, positions: Array, *, rows_per_part: int, seed: int
) -> tuple[list[Array], bool]:
    """Assign bags to parts at random: positions by part, and whether the last one is oversized.

    Parts fit in memory, except the oversized one, which takes every bag of more than a quarter of
    `rows_per_part`. Every part has at least two bags if possible, because unbiased rules compare
    distinct bags.
    """
    order = numpy_generator(seed, "parts").permutation(np.asarray(positions))
    large = sizes[order] > rows_per_part / 4
    if large.sum() == 1:
        large[np.flatnonzero(~large)[:1]] = True
    if (~large).sum() == 1:
        large[:] = True
    small = order[~large]
    # A bag belongs to the part its last row falls into: at most a quarter over the budget.
    numbers = (np.cumsum(sizes[small]) - 1) // rows_per_part
    numbers[-1:] = numbers[-2:-1]  # not alone
    parts = [*np.split(small, np.flatnonzero(np.diff(numbers)) + 1), order[large]]
    return [np.sort(part) for part in parts if len(part)], bool(large.any())


class BagParts:
    """Encoded rows of some bags on disk, in parts of whole bags; use ``with``, or `close`.

    `groups` maps names to disjoint sets of bags, such as training and held-out ones. A part has
    `rows_per_part` rows, up to half as many again.
    """

    def __init__(
        self,
        table: BagTable,
        groups: dict[str, Array],
        *,
        rows_per_part: int = 250_000,
        folder: str | Path | None = None,
    ) -> None:
        self.table, self.index = table, table.index
        self.n_features = len(table.encoder.features)
        self.parts: dict[str, list[int]] = {}
        self.positions: list[Array] = []  # of the bags of each part
        self.oversized: set[int] = set()
        for name, chosen in groups.items():
            first = len(self.positions)
            found, oversized = plan_parts(
                self.index.sizes, chosen, rows_per_part=rows_per_part, seed=0
            )
            self.positions += found
            self.parts[name] = list(range(first, len(self.positions)))
            self.oversized |= {len(self.positions) - 1} if oversized else set()
        self.part_of = np.full(self.index.n_bags, -1, dtype=np.int32)
        for part, positions in enumerate(self.positions):
            self.part_of[positions] = part
        n_rows = [self.index.sizes[positions].sum() for positions in self.positions]
        self._starts = np.append(0, np.cumsum(n_rows, dtype=np.int64))  # rows, part by part
        self._buffer = np.empty((2, 0), dtype=np.float32)
        self._folder = tempfile.TemporaryDirectory(dir=folder, prefix="unbag-")
        try:
            self._write()
        except BaseException:
            self.close()
            raise

    def _path(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def _write(self) -> None:
        """Write the rows of every chunk to the places of their parts."""
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
            raise TableError("The table changed during reading: the size of a bag differs.")

    def _by_part(self, chunk: Chunk) -> tuple[Array, Array, Array]:
        """Features and bags of a chunk in the order of parts, and where each part ends."""
        shape = chunk.batch.num_rows, self.n_features
        size = shape[0] * shape[1]
        if size > self._buffer.shape[1]:  # reused: fresh memory costs as much as the copies
            self._buffer = np.empty((2, size), dtype=np.float32)
        columns, rows = self._buffer[:, :size]
        self.table.encoder.encode_into(columns.reshape(shape, order="F"), chunk)
        np.copyto(rows.reshape(shape), columns.reshape(shape, order="F"))
        codes = self.index.codes(chunk, self.table.roles.bag)
        order, ends = grouped(self.part_of[codes] + 1, len(self.positions) + 1)
        # Mode "clip" writes into `out` without a copy; before the first end: rows of no part.
        X = np.take(rows.reshape(shape), order, axis=0, out=columns.reshape(shape), mode="clip")
        return X, codes.take(order), ends[1:]

    def bags(self, *parts: int) -> Bags:
        """Whole bags of one part or of consecutive parts, in memory."""
        [(X, codes)] = self._read(parts[0], parts[-1])
        return self.bags_of(parts, X, codes)

    def bags_of(self, parts: Sequence[int], X: Array, codes: Array) -> Bags:
        """Whole bags of parts from all their rows."""
        positions = np.concatenate([self.positions[part] for part in parts])
        return make_bags_of(X, self._places(positions)[codes], self.index, positions)

    def sums(self, part: int) -> Array:
        """Sums of the features of each bag of a part."""
        places = self._places(self.positions[part])
        rows = ((X, places[codes]) for X, codes in self.rows([part]))
        return bag_sums(rows, len(self.positions[part]), self.n_features)

    def _places(self, positions: Array) -> Array:
        """Where the bags of the index are among these positions."""
        places = np.empty(self.index.n_bags, dtype=np.int32)
        places[positions] = np.arange(len(positions))
        return places

    def __getstate__(self) -> dict[str, Any]:
        """For workers that see the same folder; the files remain owned by this object."""
        state = self.__dict__ | {"_buffer": np.empty((2, 0), dtype=np.float32)}
        return state | {"_folder": SimpleNamespace(name=self._folder.name, cleanup=int)}

    def rows(self, parts: Sequence[int], *, n_rows: int = 65_536) -> Iterator[tuple[Array, Array]]:
        """Features and bags of the rows of parts, in chunks."""
        for part in parts:
            yield from self._read(part, part, n_rows)

    def _read(
        self, part: int, last: int, n_rows: int | None = None
    ) -> Iterator[tuple[Array, Array]]:
        first, stop = self._starts[[part, last + 1]].tolist()
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


def bag_sums(chunks: Iterator[tuple[Array, Array]], n_bags: int, n_features: int) -> Array:
    """Sum of the features of every bag, in double precision, from rows in any order."""
    sums = np.zeros((n_bags, n_features))
    for X, codes in chunks:
        order, ends = grouped(codes, n_bags)
        present = np.flatnonzero(np.diff(ends))
        ends = np.append(ends[present], len(order))
        # A sparse product adds rows in place, four times faster than sorting them first.
        shape = len(present), len(order)
        sums[present] += csr_array((np.ones(len(order)), order, ends), shape=shape) @ X
    return sums
