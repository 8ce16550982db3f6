"""`BagIndex`: every bag's size and proportion, gathered in one pass over rows in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unbag.bags.batch import Task
from unbag.bags.tasks import find_task
from unbag.errors import TableError
from unbag.tables.codes import Codebook, RangeCodes, codebook_for, grown
from unbag.tables.parsing import as_numbers, as_text
from unbag.tables.roles import Roles
from unbag.tables.sources import Chunk, TableSource

__all__ = ["BagIndex", "BagTally", "bag_ids"]

Array = NDArray[Any]


def bag_ids(chunk: Chunk, column: str, *, text: bool = False) -> pa.Array:
    """Bag of each row: integers stay integers unless `text`, all else is text."""
    values = chunk.batch.column(column)
    if pa.types.is_integer(values.type) and not text:
        ids = values.cast(pa.int64(), safe=False)
    else:
        ids = as_text(chunk, column)
    if ids.null_count:
        position = np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0]
        raise TableError(f"{chunk.at(position, column)}: the row names no bag.")
    return ids


@dataclass(frozen=True)
class BagIndex:
    """All bags of a table, without their instances.

    Attributes
    ----------
    ids : pyarrow array of length n_bags
    sizes : array of shape (n_bags,)
    proportions : array of shape (n_bags,) or (n_bags, n_outputs)
    noise_variance : array of shape (n_bags,), optional
    text : bool
        Whether ids are compared as text.
    task : {"binary", "multiclass", "multilabel"}
        What the proportions are proportions of.
    """

    ids: pa.Array
    sizes: Array
    proportions: Array
    noise_variance: Array | None
    text: bool
    task: Task

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.sizes)

    @property
    def n_rows(self) -> int:
        """Number of instances."""
        return int(self.sizes.sum())

    def codes(self, chunk: Chunk, column: str) -> Array:
        """Position of each row's bag."""
        ids = bag_ids(chunk, column, text=self.text)
        found = self._book.find(ids) if ids.type == self.ids.type else np.full(len(ids), -1)
        if found.min(initial=0) < 0:
            position = np.flatnonzero(found < 0)[0]
            raise TableError(f"{chunk.at(position, column)}: the bag was not there before.")
        return found

    @cached_property
    def _book(self) -> Codebook | RangeCodes:
        if pa.types.is_integer(self.ids.type):
            span = self.ids[-1].as_py() - self.ids[0].as_py()
            if span < 16 * self.n_bags:
                return RangeCodes(self.ids)
        book = codebook_for(self.ids.type)
        book.add(self.ids)  # sorted, so codes are positions
        return book


class BagTally:
    """Counts rows and collects proportions, bag by bag, as chunks come along.

    Parameters
    ----------
    roles : Roles
    bag_table : TableSource, optional
        Table with one row a bag; without it every row carries its bag's proportion.
    text : bool
        Compare ids as text.
    """

    def __init__(
        self, roles: Roles, bag_table: TableSource | None = None, *, text: bool = False
    ) -> None:
        self.roles, self.bag_table, self.text = roles, bag_table, text
        self.columns = [] if bag_table else roles.of_bags[1:]
        self.codes: Codebook | None = None
        self.kind: pa.DataType | None = None
        self.sizes = np.zeros(0, dtype=np.int64)
        self.low = {name: np.zeros(0) for name in self.columns}
        self.high = {name: np.zeros(0) for name in self.columns}

    def add(self, chunk: Chunk) -> None:
        """Count some rows."""
        ids = bag_ids(chunk, self.roles.bag, text=self.text)
        values = self._values(chunk)
        codes = self._book(ids).add(ids)
        n_bags = int(codes.max(initial=-1)) + 1
        self.sizes = grown(self.sizes, n_bags, 0)
        np.add.at(self.sizes, codes, 1)
        for name, numbers in values.items():
            self.low[name] = grown(self.low[name], n_bags, np.inf)
            self.high[name] = grown(self.high[name], n_bags, -np.inf)
            new = np.flatnonzero(numbers != self.low[name][codes])
            np.minimum.at(self.low[name], codes[new], numbers[new])
            np.maximum.at(self.high[name], codes[new], numbers[new])

    def index(self, source: TableSource) -> BagIndex:
        """All bags seen; `source` is where an error looks for the row."""
        groups = self.groups()
        find = self._finder(source)
        if self.bag_table:
            groups = self._joined(groups, find)
        return _checked_index(groups, self.roles, self.text, find)

    def groups(self) -> _Groups:
        """Bags in the order they were met."""
        if self.codes is None or not len(self.codes.ids):
            raise TableError("The table has no rows.")
        ids = self.codes.ids
        ends = ({n: v[: len(ids)] for n, v in found.items()} for found in (self.low, self.high))
        return _Groups(ids, self.sizes[: len(ids)], *ends)

    def _book(self, ids: pa.Array) -> Codebook:
        if self.codes is None:
            self.codes, self.kind = codebook_for(ids.type), ids.type
        if ids.type != self.kind:
            raise TableError(f"Column {self.roles.bag!r} holds {self.kind} and {ids.type}.")
        return self.codes

    def _values(self, chunk: Chunk) -> dict[str, Array]:
        values = {name: as_numbers(chunk, name) for name in self.columns}
        for name, numbers in values.items():
            if np.isnan(numbers).any():
                place = chunk.at(np.flatnonzero(np.isnan(numbers))[0], name)
                raise TableError(f"{place}: the value is missing. Drop the rows of such bags.")
        return values

    def _joined(self, groups: _Groups, find: Callable[[Any], str]) -> _Groups:
        """Sizes by the instances, all else by the bag table, in its order."""
        assert self.bag_table is not None and self.codes is not None
        tally = BagTally(self.roles, text=self.text)
        for chunk in self.bag_table.chunks(self.roles.of_bags):
            tally.add(chunk)
        bags = tally.groups()
        if tally.kind != self.kind:
            raise TableError(
                f"Column {self.roles.bag!r} holds {self.kind} in the one table and "
                f"{tally.kind} in the other."
            )
        find_bag = tally._finder(self.bag_table)
        _refuse(bags.sizes > 1, bags.ids, find_bag, "the bag comes more than once in the bag table")
        absent = tally._book(groups.ids).find(groups.ids) < 0
        _refuse(absent, groups.ids, find, "the bag is not in the bag table")
        where = self.codes.find(bags.ids)
        _refuse(where < 0, bags.ids, find_bag, "the bag has no instances")
        return replace(bags, sizes=groups.sizes[where])

    def _finder(self, source: TableSource) -> Callable[[Any], str]:
        def find(bag: Any) -> str:
            """First row of a bag."""
            for chunk in source.chunks([self.roles.bag]):
                same = pc.equal(bag_ids(chunk, self.roles.bag, text=self.text), bag)
                rows = np.flatnonzero(same.to_numpy(zero_copy_only=False))
                if len(rows):
                    return chunk.at(rows[0], self.roles.bag)
            return f"bag {bag!r}"

        return find


@dataclass(frozen=True)
class _Groups:
    """Bags as they were met: rows, and the ends of each value that should be the same in all."""

    ids: pa.Array
    sizes: Array
    low: dict[str, Array]
    high: dict[str, Array]


def _refuse(bad: Array, ids: pa.Array, find: Callable[[Any], str], reason: str) -> None:
    if bad.any():
        bag = ids[int(np.flatnonzero(bad)[0])].as_py()
        more = f" ({int(bad.sum())} such bags)" if bad.sum() > 1 else ""
        raise TableError(f"{find(bag)}, bag {bag!r}: {reason}{more}.")


def _checked_index(
    groups: _Groups, roles: Roles, text: bool, find: Callable[[Any], str]
) -> BagIndex:
    ids, sizes, values = groups.ids, groups.sizes, groups.low
    for name, low in values.items():
        reason = f"{name!r} is not the same in all rows of the bag"
        _refuse(groups.high[name] - low > 1e-9, ids, find, reason)
    if roles.size is not None:
        wrong = values[roles.size] != sizes
        _refuse(wrong, ids, find, f"{roles.size!r} is not the number of rows the bag has")
    targets = np.stack([values[name] for name in roles.targets], axis=1)
    if roles.counts:
        if roles.noise is None:
            broken = np.abs(targets - np.round(targets)).max(axis=1) > 0
            _refuse(broken, ids, find, "a count must be a whole number")
        targets = targets / sizes[:, None]
    noise = None if roles.noise is None else values[roles.noise]
    if noise is None:
        outside = np.abs(targets - 0.5).max(axis=1) > 0.5
        names = " and ".join(map(repr, roles.targets))
        _refuse(outside, ids, find, f"{names} must lie between 0 and {_limit(roles)}")
    else:
        _refuse(np.asarray(noise < 0), ids, find, f"{roles.noise!r} must not be negative")
    if len(ids) < 2:
        raise TableError(f"{find(ids[0].as_py())}: all rows are of one bag; two are needed.")
    order = pc.array_sort_indices(ids).to_numpy()
    proportions = targets[order, 0] if len(roles.targets) == 1 else targets[order]
    sizes, noise = sizes[order], None if noise is None else noise[order]
    task = find_task(proportions, sizes, noise_variance=noise, task=roles.task)
    return BagIndex(ids.take(pa.array(order)), sizes, proportions, noise, text, task)


def _limit(roles: Roles) -> str:
    return "the number of rows of the bag" if roles.counts else "1 (divide percentages by 100)"
