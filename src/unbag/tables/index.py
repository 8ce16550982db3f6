"""`BagIndex`: every bag's size and proportion, gathered in one pass over rows in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unbag.bags.bags import infer_task
from unbag.bags.batch import Task
from unbag.errors import TableError
from unbag.tables.parsing import as_numbers, as_text
from unbag.tables.roles import Roles
from unbag.tables.sources import Chunk, TableSource

__all__ = ["BagIndex", "BagTally", "bag_ids"]

Array = NDArray[Any]
# Groups kept before they are merged: some 50 MB.
MERGE_ROWS = 1_000_000


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
    """

    ids: pa.Array
    sizes: Array
    proportions: Array
    noise_variance: Array | None
    text: bool

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.sizes)

    @property
    def n_rows(self) -> int:
        """Number of instances."""
        return int(self.sizes.sum())

    @property
    def task(self) -> Task:
        """What the proportions are proportions of."""
        return infer_task(self.proportions)

    def codes(self, chunk: Chunk, column: str) -> Array:
        """Position of each row's bag."""
        ids = bag_ids(chunk, column, text=self.text)
        found = pc.index_in(ids, value_set=self.ids)
        if found.null_count:
            position = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))[0]
            raise TableError(f"{chunk.at(position, column)}: the bag was not there before.")
        return found.to_numpy(zero_copy_only=False)


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
        self.columns = roles.of_bags[1:]
        self.parts: list[pa.Table] = []

    def add(self, chunk: Chunk) -> None:
        """Count some rows."""
        ids = bag_ids(chunk, self.roles.bag, text=self.text)
        values = {} if self.bag_table else self._values(chunk)
        table = pa.table({"bag": ids, **values})
        asked = [(name, how) for name in values for how in ("min", "max")]
        groups = table.group_by("bag", use_threads=False).aggregate([([], "count_all"), *asked])
        self.parts.append(_renamed(groups, {"count_all": "rows"}))
        if sum(part.num_rows for part in self.parts) > MERGE_ROWS:
            self.parts = [self._merged()]

    def index(self, source: TableSource) -> BagIndex:
        """All bags seen; `source` is where an error looks for the row."""
        groups = self._merged()
        if self.bag_table:
            groups = self._joined(groups, source)
        return _checked_index(groups, self.roles, self.text, self._finder(source))

    def _values(self, chunk: Chunk) -> dict[str, Array]:
        values = {name: as_numbers(chunk, name) for name in self.columns}
        for name, numbers in values.items():
            if np.isnan(numbers).any():
                place = chunk.at(np.flatnonzero(np.isnan(numbers))[0], name)
                raise TableError(f"{place}: the value is missing. Drop the rows of such bags.")
        return values

    def _merged(self) -> pa.Table:
        if not self.parts:
            raise TableError("The table has no rows.")
        kinds = {part.schema.field("bag").type for part in self.parts}
        if len(kinds) > 1:
            raise TableError(f"Column {self.roles.bag!r} holds {' and '.join(map(str, kinds))}.")
        table = pa.concat_tables(self.parts)
        if len(self.parts) == 1:
            return table
        names = [name for name in table.column_names if name not in ("bag", "rows")]
        asked = [("rows", "sum"), *((name, name[-3:]) for name in names)]
        groups = table.group_by("bag", use_threads=False).aggregate(asked)
        return _renamed(groups, {"rows_sum": "rows"} | {f"{n}_{n[-3:]}": n for n in names})

    def _joined(self, groups: pa.Table, source: TableSource) -> pa.Table:
        """Beside each bag of the instances, its row of the bag table."""
        assert self.bag_table is not None
        tally = BagTally(self.roles, text=self.text)
        for chunk in self.bag_table.chunks(self.roles.of_bags):
            tally.add(chunk)
        table = tally._merged()
        if table["bag"].type != groups["bag"].type:
            raise TableError(
                f"Column {self.roles.bag!r} holds {groups['bag'].type} in the one table and "
                f"{table['bag'].type} in the other."
            )
        ids, rows = table["bag"].combine_chunks(), table["rows"].to_numpy()
        find = tally._finder(self.bag_table)
        _refuse(rows > 1, ids, find, "the bag comes more than once in the bag table")
        where = pc.index_in(groups["bag"].combine_chunks(), value_set=ids)
        absent = where.is_null().to_numpy(zero_copy_only=False)
        of_instances = groups["bag"].combine_chunks()
        _refuse(absent, of_instances, self._finder(source), "the bag is not in the bag table")
        empty = np.ones(len(ids), bool)
        empty[where.to_numpy(zero_copy_only=False)] = False
        _refuse(empty, ids, find, "the bag has no instances")
        return table.take(where).set_column(
            table.column_names.index("rows"), "rows", groups["rows"]
        )

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


def _renamed(table: pa.Table, names: dict[str, str]) -> pa.Table:
    return table.rename_columns([names.get(name, name) for name in table.column_names])


def _refuse(bad: Array, ids: pa.Array, find: Callable[[Any], str], reason: str) -> None:
    if bad.any():
        bag = ids[int(np.flatnonzero(bad)[0])].as_py()
        more = f" ({int(bad.sum())} such bags)" if bad.sum() > 1 else ""
        raise TableError(f"{find(bag)}, bag {bag!r}: {reason}{more}.")


def _checked_index(
    groups: pa.Table, roles: Roles, text: bool, find: Callable[[Any], str]
) -> BagIndex:
    ids, sizes = groups["bag"].combine_chunks(), groups["rows"].to_numpy()
    values = {}
    for name in roles.of_bags[1:]:
        low, high = groups[f"{name}_min"].to_numpy(), groups[f"{name}_max"].to_numpy()
        reason = f"{name!r} is not the same in all rows of the bag"
        _refuse(high - low > 1e-9, ids, find, reason)
        values[name] = low
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
    return BagIndex(
        ids.take(pa.array(order)),
        sizes[order],
        proportions,
        None if noise is None else noise[order],
        text,
    )


def _limit(roles: Roles) -> str:
    return "the number of rows of the bag" if roles.counts else "1 (divide percentages by 100)"
