"""Frames as Arrow tables, in chunks that know the origin of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from unbag.errors import TableError

Item = TypeVar("Item")
CHUNK_ROWS = 262_144
END: Any = object()


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table: `place` is the file or "table", `first_row` the user's row number."""

    batch: pa.RecordBatch
    place: str
    first_row: int

    def at(self, position: int, column: str) -> str:
        """File, row and column of a value."""
        return f"{self.place}, row {self.first_row + int(position)}, column {column!r}"


class TableInMemory:
    """An Arrow table, pandas or polars frame, or anything else with Arrow's C stream."""

    def __init__(self, table: Any, *, chunk_rows: int = CHUNK_ROWS) -> None:
        self.table, self.chunk_rows = as_arrow(table), chunk_rows
        self.names = list(self.table.column_names)
        check_header(self.names, "table")

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """Read these columns, or all."""
        table = self.table if columns is None else self.table.select(list(columns))
        row = 1
        for batch in table.to_batches(max_chunksize=self.chunk_rows):
            yield Chunk(batch, "table", row)
            row += batch.num_rows


def is_frame(X: Any) -> bool:
    """Whether `X` is a table with named columns: pandas, polars or Arrow."""
    return not isinstance(X, np.ndarray) and (
        hasattr(X, "__arrow_c_stream__") or (hasattr(X, "iloc") and hasattr(X, "columns"))
    )


def as_arrow(table: Any) -> pa.Table:
    """Turn a frame, or an array with columns x0, x1 and so on, into an Arrow table."""
    try:
        if isinstance(table, np.ndarray) and table.ndim == 2:
            return pa.table({f"x{number}": column for number, column in enumerate(table.T)})
        if hasattr(table, "iloc"):  # pandas would add its index as a column
            return pa.Table.from_pandas(table, preserve_index=False)
        return pa.table(table.collect() if hasattr(table, "collect") else table)  # lazy polars
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        _refuse_repeated(table)
        _refuse_mixed(table)
        raise TableError(
            f"A table must be a path, or a pyarrow, pandas or polars table; this "
            f"{type(table).__name__} cannot be read: {error}"
        ) from error


def _refuse_repeated(frame: Any) -> None:
    """Name the first column of a pandas frame that comes more than once."""
    names = list(getattr(frame, "columns", ()))
    for name in names:
        if names.count(name) > 1:
            raise TableError(f"Column {name!r} comes more than once. Rename one, or drop it.")


def _refuse_mixed(frame: Any) -> None:
    """Name the first column of a pandas frame with values of incompatible types."""
    for name, values in frame.items() if hasattr(frame, "iloc") else ():
        try:
            pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            kinds = sorted({type(value).__name__ for value in values if value is not None})
            raise TableError(
                f"Column {name!r} holds values of types that do not mix: {', '.join(kinds)}. "
                f"Make them one type, such as X[{name!r}].astype(str), or leave it out."
            ) from error


def check_header(names: Sequence[str], place: str) -> None:
    """Raise if a table has no columns, or two of the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{place}: column {twice[0]!r} comes more than once in the header.")
    if not names:
        raise TableError(f"{place}: there are no columns.")


def require(names: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise unless every wanted column exists."""
    names = list(names)
    for name in wanted:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            raise TableError(f"There is no column {name!r}; there are {shown}.{hint}")


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Compute the next item in a thread while the current one is used."""
    thread = ThreadPoolExecutor(1)
    try:
        coming = thread.submit(next, items, END)
        while (item := coming.result()) is not END:
            coming = thread.submit(next, items, END)
            yield item
    finally:  # without waiting: the thread itself may be what collects this generator
        thread.shutdown(wait=False, cancel_futures=True)
