"""Detect columns that leak labels or bag IDs, and keys that are not unique."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.errors import BagDataWarning, TableError
from unbag.frames import TableEncoder
from unbag.frames.chunks import Chunk
from unbag.frames.parsing import text_of

PRECISION = 1e-5  # of features, in standard deviations
MAX_KEYS = 5_000_000  # rows up to which keys are compared


def refuse_leaks(bags: Bags, encoder: TableEncoder) -> None:
    """Raise if a column equals, or averages to, the proportion or count of every bag.

    A model would read the labels off it, and be evaluated by the same labels.
    """
    quantities = list(_label_quantities(bags))
    for column, place in encoder.places:
        if column.kind not in ("number", "boolean"):
            continue
        feature = bags.X[bags.rows, place.start].astype(float)
        low, high = (end.reduceat(feature, bags.starts) for end in (np.minimum, np.maximum))
        means = np.add.reduceat(feature, bags.starts) / bags.sizes
        if np.ptp(means) == 0:
            continue
        constant = (low == high).all()
        for what, values in quantities:
            gaps = np.abs((values - column.mean) / column.scale - means)
            if (gaps <= PRECISION * (1 + np.abs(means))).all():
                _refuse(column.name, f"is {what}" if constant else f"has {what} as its mean")


def _refuse(name: str, what: str) -> None:
    raise TableError(
        f"Column {name!r} {what} in every bag, which leaks the labels. Leave it out with --ignore "
        "(`ignored` in Python), or name it with --proportion, --count or --size if it is one."
    )


def _label_quantities(bags: Bags) -> Iterator[tuple[str, Array]]:
    proportions = bags.proportions.reshape(bags.n_bags, -1)
    rest = 1 - proportions.sum(axis=1)
    for share, words in [*((p, "") for p in proportions.T), (rest, " of other labels")]:
        yield f"the proportion{words}", share
        yield f"the percentage{words}", 100 * share
        yield f"the count{words}", share * bags.sizes


class BagCopies:
    """Find columns that copy the bag ID, by which a model would memorise bags."""

    def __init__(self, bag: str, names: Sequence[str]) -> None:
        self.bag, self.names = bag, list(names)

    def add(self, chunk: Chunk) -> None:
        """Keep the columns that also equal the ID in these rows."""
        own = chunk.batch.column(self.bag)
        columns = {n: chunk.batch.column(n) for n in self.names if n in chunk.batch.schema.names}
        # The first value rules out most columns.
        self.names = [
            n for n, v in columns.items() if _same_text(v[:1], own[:1]) and _same_text(v, own)
        ]

    def check(self) -> None:
        """Raise if a column equals the ID everywhere."""
        if self.names:
            raise TableError(
                f"Column {self.names[0]!r} is a copy of the bag column {self.bag!r}. Leave it out "
                "with --ignore (`ignored` in Python), or keep it with --key (`keys`)."
            )


class RepeatedKeys:
    """Find keys that are not unique, by which predictions could not be joined."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self.n_rows = list(names), 0
        self.parts: list[pa.RecordBatch] = []

    def add(self, chunk: Chunk) -> None:
        """Store the keys of these rows."""
        self.n_rows += chunk.batch.num_rows
        if self.names and self.n_rows <= MAX_KEYS:
            self.parts.append(chunk.batch.select(self.names))

    def check(self) -> None:
        """Warn if a key repeats."""
        if not self.parts or self.n_rows > MAX_KEYS:
            return
        keys = pa.Table.from_batches(self.parts)
        distinct = len(keys.group_by(self.names).aggregate([]))
        if distinct < len(keys):
            warnings.warn(
                f"The key {', '.join(self.names)} has {distinct} different values in {len(keys)} "
                "rows, so predictions cannot be joined by it.",
                BagDataWarning,
                stacklevel=3,
            )


def _same_text(values: pa.Array, others: pa.Array) -> bool:
    try:
        return bool(text_of(values).equals(text_of(others)))
    except pa.ArrowException:
        return False
