"""Scan a table in one pass for its bags and columns, and read it as `Bags`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.errors import BagDataWarning, TableError
from unbag.frames import TableEncoder
from unbag.frames.chunks import require
from unbag.frames.columns import ColumnScan
from unbag.tables.index import BagIndex, BagTally
from unbag.tables.leaks import BagCopies, RepeatedKeys
from unbag.tables.reading import TableFiles, TableSource, open_table
from unbag.tables.roles import Roles

CHANGED = "The table changed during reading: the size of a bag differs."


@dataclass(frozen=True)
class BagTable:
    """A table with known bags and columns, which can be read again."""

    source: TableSource
    roles: Roles
    index: BagIndex
    encoder: TableEncoder

    @property
    def columns(self) -> list[str]:
        """Columns needed for training."""
        return [self.roles.bag, *self.encoder.names]

    @property
    def n_bytes(self) -> int:
        """Memory of all features."""
        return 4 * self.index.n_rows * len(self.encoder.features)


def scan_table(
    table: Any,
    roles: Roles,
    *,
    bag_table: Any = None,
    encoder: TableEncoder | None = None,
) -> BagTable:
    """Find the bags and decide how each column is used, in one pass.

    A `bag_table` has one row per bag, with the proportions. The `encoder` of a fitted model
    replaces one made from the columns.
    """
    source = open_table(table)
    bags = None if bag_table is None else open_table(bag_table)
    others = [*roles.keys, *roles.ignored, *roles.categories, *roles.numbers]
    require(source.names, [roles.bag, *(encoder.names if encoder else others)])
    require((bags or source).names, roles.of_bags)
    names = [] if encoder else roles.features(source.names)
    both = [name for name in roles.of_bags[1:] if name in source.names]
    if bags is not None and both:
        message = f"Column {both[0]!r} is in both tables; the one of the bag table is used."
        warnings.warn(message, BagDataWarning, stacklevel=2)
    tally = BagTally(roles, bags, text=_compare_as_text(source, bags, roles.bag))
    copies, keys = BagCopies(roles.bag, names), RepeatedKeys(() if encoder else roles.keys)
    scans = [ColumnScan(n, n in roles.categories, n in roles.numbers) for n in names]
    own = [roles.bag] if bags else roles.of_bags
    visitors: list[Any] = [tally, copies, keys, *scans]
    for chunk in source.chunks([*own, *keys.names, *names]):
        for visitor in visitors:
            visitor.add(chunk)
    index = tally.index(source)
    copies.check()
    keys.check()
    encoder = encoder or TableEncoder().fit_scans(scans)
    if not encoder.used:
        uses = "; ".join(f"{column.name}: {column.use}" for column in encoder.columns_)
        raise TableError(f"No column is usable as a feature: {uses}.")
    return BagTable(source, roles, index, encoder)


def _compare_as_text(source: TableSource, bags: TableSource | None, bag: str) -> bool:
    """Whether IDs of either table are text, as in CSV."""
    return bags is not None and any(
        isinstance(s, TableFiles) and s.reads_text(bag) for s in (source, bags)
    )


@dataclass(frozen=True, eq=False)
class TableBags:
    """Bags of a table that are read from its files when needed, such as on a worker."""

    table: BagTable
    positions: Array

    def take(self, positions: Array) -> Bags:
        """Read the bags at these positions."""
        return read_bags(self.table, self.positions[positions])


def read_bags(
    table: BagTable,
    positions: Array | None = None,
    *,
    visit: Callable[[Array, Array], None] | None = None,
) -> Bags:
    """Read all bags, or those at some positions of the index, into memory.

    `visit` gets the features of all rows, chunk by chunk, and the position of each row's bag.
    """
    n_bags = table.index.n_bags
    positions = np.arange(n_bags) if positions is None else np.unique(positions)
    places = np.full(n_bags, -1, dtype=np.int32)
    places[positions] = np.arange(len(positions))
    n_rows = int(table.index.sizes[positions].sum())
    X = np.empty((n_rows, len(table.encoder.features)), dtype=np.float32)
    found = np.empty(n_rows, dtype=np.int32)
    start = 0
    for chunk in table.source.chunks(table.columns):
        codes = table.index.codes(chunk, table.roles.bag)
        features = table.encoder.encode_chunk(chunk, by_column=True)
        if visit is not None:
            visit(features, codes)
        here = places[codes]
        chosen = here >= 0
        stop = start + int(chosen.sum())
        if stop > n_rows:
            raise TableError(CHANGED)
        X[start:stop], found[start:stop] = features[chosen], here[chosen]
        start = stop
    return make_bags_of(X, found, table.index, positions)


def make_bags_of(X: Array, places: Array, index: BagIndex, positions: Array | None = None) -> Bags:
    """Make the bags at these positions from rows and the place of each row's bag among them."""
    positions = np.arange(index.n_bags) if positions is None else positions
    rows, sizes = np.argsort(places, kind="stable"), index.sizes[positions]
    if not np.array_equal(np.bincount(places, minlength=len(positions)), sizes):
        raise TableError(CHANGED)
    noise = None if index.noise_variance is None else index.noise_variance[positions]
    ids = index.ids.take(pa.array(positions)).to_pylist()
    return Bags(X, rows, sizes, index.proportions[positions], ids, noise, index.task)
