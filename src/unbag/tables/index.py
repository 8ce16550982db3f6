"""`BagIndex`: size and proportion of every bag, from one pass over rows in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag.arrays import Array
from unbag.bags.batch import Task
from unbag.bags.noise import check_noise_shows, exact_shares, read_rounding
from unbag.bags.tasks import find_task
from unbag.bags.validation import reach_of_noise
from unbag.errors import TableError
from unbag.frames.chunks import Chunk
from unbag.frames.parsing import as_numbers, as_text
from unbag.tables.reading import TableSource
from unbag.tables.roles import ROUNDING, Roles

Finder = Callable[[Any, str], str]  # where a bag has a value: bag and column in, place out


def bag_ids(chunk: Chunk, column: str, *, text: bool = False) -> pa.Array:
    """Bag ID of each row: integers stay integers unless `text`, everything else is text."""
    values = chunk.batch.column(column)
    if pa.types.is_integer(values.type) and not text:
        ids = values.cast(pa.int64(), safe=False)
    else:
        ids = as_text(chunk, column)
    if ids.null_count:
        position = np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0]
        raise TableError(f"{chunk.at(position, column)}: the bag of this row is missing.")
    return ids


class IdCodes:
    """Number IDs from 0 in order of appearance, starting with the distinct `ids`."""

    def __init__(self, ids: pa.Array) -> None:
        self.ids = ids

    def add(self, ids: pa.Array) -> Array:
        """Codes of IDs; unseen ones get the next codes."""
        codes = self.find(ids)
        if (codes < 0).any():
            unseen = ids.filter(pa.array(codes < 0)).unique()
            self.ids = pa.concat_arrays([self.ids, unseen])
            codes = self.find(ids)
        return codes

    def find(self, ids: pa.Array) -> Array:
        """Codes of IDs, -1 for unseen ones."""
        found = pc.index_in(ids, value_set=self.ids)
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class BagIndex:
    """All bags of a table, without their instances; `text` means that IDs are compared as text."""

    ids: pa.Array
    sizes: Array
    proportions: Array
    noise_variance: Array | None
    text: bool
    task: Task
    blocks: Array | None = None

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
            raise TableError(
                f"{chunk.at(position, column)}: the bag did not exist in the first pass."
            )
        return found

    @cached_property
    def _book(self) -> IdCodes:
        return IdCodes(self.ids)


class BagTally:
    """Count rows and collect proportions per bag, chunk by chunk.

    A `bag_table` has one row per bag. Without it, every row carries the proportion of its bag.
    """

    def __init__(
        self, roles: Roles, bag_table: TableSource | None = None, *, text: bool = False
    ) -> None:
        self.roles, self.bag_table, self.text = roles, bag_table, text
        self.columns = [] if bag_table else roles.of_bags[1:]
        self.codes: IdCodes | None = None
        self.blocks = IdCodes(pa.array([], pa.string()))
        self.sizes = np.zeros(0, dtype=np.int64)
        self.low = {name: np.zeros(0) for name in self.columns}
        self.high = {name: np.zeros(0) for name in self.columns}

    def add(self, chunk: Chunk) -> None:
        """Count some rows."""
        ids = bag_ids(chunk, self.roles.bag, text=self.text)
        codes = self._book(ids).add(ids)
        n_bags = len(self._book(ids).ids)
        self.sizes = _grown(self.sizes, n_bags, 0) + np.bincount(codes, minlength=n_bags)
        for name in self.columns:
            numbers = self._numbers(chunk, name)
            if np.isnan(numbers).any():
                place = chunk.at(np.flatnonzero(np.isnan(numbers))[0], name)
                raise TableError(f"{place}: the value is missing. Drop the rows of such bags.")
            self.low[name] = _grown(self.low[name], n_bags, np.inf)
            self.high[name] = _grown(self.high[name], n_bags, -np.inf)
            new = np.flatnonzero(numbers != self.low[name][codes])
            np.minimum.at(self.low[name], codes[new], numbers[new])
            np.maximum.at(self.high[name], codes[new], numbers[new])

    def index(self, source: TableSource) -> BagIndex:
        """Build the index; errors name the row in `source`."""
        find = self._finder(source)
        if self.bag_table is None:
            return self._checked(find)
        return self._joined(find, self.bag_table)._checked(self._finder(self.bag_table))

    @property
    def ids(self) -> pa.Array:
        """Bag IDs in order of appearance."""
        if self.codes is None or not len(self.codes.ids):
            raise TableError("The table has no rows.")
        return self.codes.ids

    def _book(self, ids: pa.Array) -> IdCodes:
        self.codes = self.codes or IdCodes(ids[:0])
        kind = self.codes.ids.type
        if ids.type != kind:
            raise TableError(f"Column {self.roles.bag!r} contains both {kind} and {ids.type}.")
        return self.codes

    def _numbers(self, chunk: Chunk, name: str) -> Array:
        """Values of a bag column; blocks are numbered, and a missing block is NaN."""
        if name != self.roles.block:
            return as_numbers(chunk, name)
        text = as_text(chunk, name)
        codes = self.blocks.add(text).astype(float)
        return np.where(text.is_null().to_numpy(zero_copy_only=False), np.nan, codes)

    def _joined(self, find: Finder, bag_table: TableSource) -> BagTally:
        """Values from the bag table, in its order, with sizes counted from the rows."""
        bags = BagTally(self.roles, text=self.text)
        for chunk in bag_table.chunks(self.roles.of_bags):
            bags.add(chunk)
        if bags.ids.type != self.ids.type:
            raise TableError(
                f"Column {self.roles.bag!r} contains {self.ids.type} in one table and "
                f"{bags.ids.type} in the other."
            )
        refuse = partial(_refuse, bags.ids, self._finder(bag_table))
        refuse(bags.sizes > 1, self.roles.bag, "the bag occurs more than once in the bag table")
        absent = bags._book(self.ids).find(self.ids) < 0
        _refuse(self.ids, find, absent, self.roles.bag, "the bag is not in the bag table")
        where = self._book(bags.ids).find(bags.ids)
        refuse(where < 0, self.roles.bag, "the bag has no instances")
        bags.sizes = self.sizes[where]
        return bags

    def _finder(self, source: TableSource) -> Finder:
        own = self.roles.bag

        def find(bag: Any, column: str) -> str:
            """The first row whose value differs from the bag's first row, or else that row."""
            first: tuple[str, float] | None = None
            for chunk in source.chunks(list(dict.fromkeys([own, column]))):
                same = pc.equal(bag_ids(chunk, own, text=self.text), bag)
                rows = np.flatnonzero(same.to_numpy(zero_copy_only=False))
                if not len(rows):
                    continue
                values = np.zeros(len(rows))
                if column != own:
                    values = self._numbers(chunk, column)[rows]
                first = first or (chunk.at(rows[0], column), values[0])
                others = rows[_differ(first[1], values)]
                if len(others):
                    return chunk.at(others[0], column)
            return first[0] if first else f"bag {bag!r}"

        return find

    def _checked(self, find: Finder) -> BagIndex:
        ids, sizes, values, roles = self.ids, self.sizes, self.low, self.roles
        refuse = partial(_refuse, ids, find)
        for name, low in values.items():
            reason = f"{name!r} differs from the first row of the bag"
            refuse(_differ(self.high[name], low), name, reason)
        if roles.size is not None:
            reason = f"{roles.size!r} differs from the number of rows of the bag"
            refuse(values[roles.size] != sizes, roles.size, reason)
        noise = None if roles.noise is None else values.get(roles.noise)
        if roles.noise is not None and noise is not None:
            refuse(noise < 0, roles.noise, f"{roles.noise!r} must not be negative")
            noise = noise if noise.any() else None
        amounts = roles.task == "amount"
        reach = np.zeros(len(sizes)) if noise is None else reach_of_noise(noise)
        for name in () if amounts else roles.targets:
            _check_target(values[name], sizes, reach, refuse, name, counted=bool(roles.counts))
        targets = np.stack([values[name] for name in roles.targets], axis=1)
        if roles.counts:
            targets = targets / sizes[:, None]
            noise = None if noise is None else noise / sizes**2
        if roles.noise == ROUNDING and ROUNDING not in values:
            noise = read_rounding(ROUNDING, targets, sizes)
        elif noise is None and not amounts:
            targets = exact_shares(targets, sizes)
        if not amounts:
            check_noise_shows(targets, sizes, noise)
        if len(ids) < 2:
            place = find(ids[0].as_py(), roles.bag)
            raise TableError(f"{place}: all rows belong to one bag; at least two bags are needed.")
        order = pc.array_sort_indices(ids).to_numpy()
        proportions = targets[order, 0] if len(roles.targets) == 1 else targets[order]
        sizes, noise = sizes[order], None if noise is None else noise[order]
        task = find_task(proportions, sizes, noise_variance=noise, task=roles.task)
        blocks = None if roles.block is None else values[roles.block][order].astype(int)
        ids = ids.take(pa.array(order))
        return BagIndex(ids, sizes, proportions, noise, self.text, task, blocks)


def _grown(values: Array, n: int, fill: float) -> Array:
    return np.pad(values, (0, n - len(values)), constant_values=fill)


def _differ(one: Array | float, other: Array) -> Array:
    return np.abs(one - other) > 1e-9


def _refuse(
    ids: pa.Array, find: Finder, bad: Array, column: str, reason: str, advice: str = ""
) -> None:
    if bad.any():
        bag = ids[int(np.flatnonzero(bad)[0])].as_py()
        more = f" ({int(bad.sum())} such bags)" if bad.sum() > 1 else ""
        raise TableError(f"{find(bag, column)}, bag {bag!r}: {reason}{more}.{advice}")


def _check_target(
    values: Array, sizes: Array, reach: Array, refuse: Any, name: str, *, counted: bool
) -> None:
    """Raise for impossible proportions or counts; noise may exceed the range by `reach`."""
    advice = " If noise was added on purpose, name its variance with --noise (`noise` in Python)."
    most, limit = (sizes, "the number of rows of the bag") if counted else (1, "1")
    if counted:
        broken = (values != np.round(values)) & (reach == 0)
        refuse(broken, name, f"{name!r} must be a whole number", advice)
    else:
        advice = f" Divide percentages by 100.{advice}"
    outside = (values < -reach * most) | (values > (1 + reach) * most)
    noisy = ", up to the stated noise" if reach.any() else ""
    refuse(outside, name, f"{name!r} must lie between 0 and {limit}{noisy}", advice)
