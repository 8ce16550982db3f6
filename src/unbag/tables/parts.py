"""Bags larger than memory: rows in any order are dealt to files that each hold whole bags."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.randomness import numpy_generator
from unbag.tables.codes import runs, stable_order
from unbag.tables.index import BagIndex
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
    """Deal bags to parts at random, so that none but the oversized one outgrows memory.

    A bag of more than a quarter of `rows_per_part` goes to the oversized part. Every part holds at
    least two bags, because the unbiased rules compare distinct bags.
    """
    order = numpy_generator(seed, "parts").permutation(np.asarray(positions))
    large = index.sizes[order] > rows_per_part / 4
    if large.sum() == 1 or (~large).sum() == 1:
        large[np.flatnonzero(~large)[:1]] = True
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
    """Encoded rows of some bags on disk, dealt to parts; remove them with `close` or ``with``.

    Parameters
    ----------
    table : BagTable
    groups : mapping from name to positions of bags
        Disjoint sets of bags that are wanted apart, such as training and held-out ones.
    rows_per_part : int
        Rows in memory at a time, up to twice as many.
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
        self.part_of = np.full(self.index.n_bags, -1)
        self.rows_per_part = rows_per_part
        for name, positions in groups.items():
            self._add_group(name, positions, seed)
        self._folder = tempfile.TemporaryDirectory(dir=folder, prefix="unbag-")
        self._write()

    def _add_group(self, name: str, positions: Array, seed: int) -> None:
        plan = plan_parts(self.index, positions, rows_per_part=self.rows_per_part, seed=seed)
        first = sum(map(len, self.parts.values()))
        self.part_of = np.where(plan.part_of >= 0, plan.part_of + first, self.part_of)
        self.parts[name] = list(range(first, first + plan.n_parts))
        if plan.oversized is not None:
            self.oversized.add(first + plan.oversized)

    def _write(self) -> None:
        """Append every row to the file of its part: its bag's position, then its features."""
        rows = dealt = np.empty((0, 1 + self.n_features), dtype=np.int32)
        for chunk in self.table.source.chunks(self.table.columns):
            codes = self.index.codes(chunk, self.table.roles.bag)
            if len(codes) > len(rows):  # memory is kept, because fresh pages cost more than copying
                rows, dealt = np.empty((2, len(codes), rows.shape[1]), dtype=np.int32)
            filled = rows[: len(codes)]
            filled[:, 0] = codes
            self.table.encoder.encode_into(filled[:, 1:].view(np.float32), chunk)
            self._deal(filled, self.part_of[codes], dealt)

    def _deal(self, rows: Array, parts: Array, dealt: Array) -> None:
        wanted = np.flatnonzero(parts >= 0)
        order = wanted[stable_order(parts[wanted])]
        np.take(rows, order, axis=0, out=dealt[: len(order)], mode="clip")
        numbers, counts = runs(parts[order])
        stops = np.cumsum(counts)
        for number, start, stop in zip(numbers, stops - counts, stops, strict=True):
            with self._path(number).open("ab") as file:
                file.write(dealt[start:stop].data)

    def _path(self, part: int) -> Path:
        return Path(self._folder.name) / f"{part}.rows"

    def bags(self, part: int) -> Bags:
        """Whole bags of a part, in memory; rows lie bag by bag."""
        with self._path(part).open("rb") as file:
            X, codes = self._read(file, -1)
        order = stable_order(codes)
        return make_bags_of(X.take(order, axis=0), codes[order], self.index)

    def rows(self, parts: Sequence[int], *, n_rows: int = 65_536) -> Iterator[tuple[Array, Array]]:
        """Features and bags of the rows of parts, some at a time, in the order they came."""
        for part in parts:
            with self._path(part).open("rb") as file:
                while len((read := self._read(file, n_rows))[1]):
                    yield read

    def _read(self, file: BinaryIO, n_rows: int) -> tuple[Array, Array]:
        """Features and bags of the next rows, -1 for all of them."""
        width = 1 + self.n_features
        rows = np.fromfile(file, np.int32, count=n_rows * width if n_rows > 0 else -1)
        rows = rows.reshape(-1, width)
        return rows[:, 1:].view(np.float32), rows[:, 0]

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def __enter__(self) -> BagParts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        order = stable_order(codes)
        present, counts = runs(np.asarray(codes)[order])
        starts = np.cumsum(counts) - counts
        sums[present] += np.add.reduceat(X[order], starts, axis=0, dtype=float)
    return sums
