"""Tables as streams of chunks: CSV and Parquet files, folders, globs, and tables in memory."""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from unbag.errors import TableError
from unbag.tables.prefetch import ahead

__all__ = [
    "Chunk",
    "TableFiles",
    "TableInMemory",
    "TableSource",
    "open_table",
]

SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
EXAMPLES = Path(__file__).parents[1] / "datasets" / "examples"
CHUNK_ROWS = 262_144


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table, and where they come from.

    Attributes
    ----------
    batch : RecordBatch
    place : str
        The file, or "table" for one in memory.
    first_row : int
        What a user calls the first of these rows: in CSV the header is row 1.
    """

    batch: pa.RecordBatch
    place: str
    first_row: int

    def at(self, position: int, column: str) -> str:
        """Say where a value is."""
        return f"{self.place}, row {self.first_row + int(position)}, column {column!r}"


class TableSource(Protocol):
    """Something that can be read more than once, chunk by chunk."""

    names: list[str]

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """Read these columns, or all."""


class TableInMemory:
    """An Arrow table, pandas or polars frame, or anything else with Arrow's C stream."""

    def __init__(self, table: Any, *, chunk_rows: int = CHUNK_ROWS) -> None:
        self.table, self.chunk_rows = as_arrow(table), chunk_rows
        self.names = list(self.table.column_names)
        _check_names(self.names, "table")

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """Read these columns, or all."""
        table = self.table if columns is None else self.table.select(list(columns))
        row = 1
        for batch in table.to_batches(max_chunksize=self.chunk_rows):
            yield Chunk(batch, "table", row)
            row += batch.num_rows


class TableFiles:
    """Files of one format and one set of columns, read one after the other.

    CSV columns are read as text; what they hold is decided later, from all rows.
    """

    def __init__(self, paths: Sequence[Path], *, chunk_rows: int = CHUNK_ROWS) -> None:
        self.paths, self.chunk_rows = list(paths), chunk_rows
        self.names = _names_of(self.paths[0])
        self.format = _format_of(self.paths[0])
        for path in self.paths[1:]:
            _check_same_columns(self.names, _names_of(path), self.paths[0], path)

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """Read these columns, or all."""
        wanted = self.names if columns is None else list(columns)
        for path in self.paths:
            yield from self.chunks_of(path, wanted)

    def chunks_of(
        self, path: Path, columns: list[str], groups: Sequence[int] | None = None
    ) -> Iterator[Chunk]:
        """Read these columns of one file; of Parquet, only these row groups if there are any."""
        with _named(path, self.names):
            if self.format == "csv":
                yield from ahead(_read_csv(path, self.names, columns, self.chunk_rows))
            else:
                yield from ahead(_read_parquet(path, columns, self.chunk_rows, groups))


def open_table(source: Any, *, chunk_rows: int = CHUNK_ROWS) -> TableSource:
    """Open a table for reading.

    Parameters
    ----------
    source : path, glob, or table
        A CSV or Parquet file, a folder of such files, a pattern such as ``"part-*.parquet"``, a
        bundled table such as ``"example:conversions"``, or a pyarrow, pandas or polars table.
    chunk_rows : int
        Rows held in memory at a time.

    Raises
    ------
    TableError
        If it is not a table; the message names the file.

    Examples
    --------
    >>> [chunk.batch.num_rows for chunk in open_table(pa.table({"x": [1, 2, 3]})).chunks()]
    [3]
    """
    if isinstance(source, (TableFiles, TableInMemory)):
        return source
    if isinstance(source, (str, Path)):
        return TableFiles(find_files(source), chunk_rows=chunk_rows)
    return TableInMemory(source, chunk_rows=chunk_rows)


def as_arrow(table: Any) -> pa.Table:
    """Turn a frame into an Arrow table."""
    try:
        if hasattr(table, "iloc"):  # pandas would add its index as a column
            return pa.Table.from_pandas(table, preserve_index=False)
        return pa.table(table.collect() if hasattr(table, "collect") else table)  # lazy polars
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
        raise TableError(
            f"A table must be a path, or a pyarrow, pandas or polars table; this "
            f"{type(table).__name__} cannot be read: {error}"
        ) from error


def find_files(source: str | Path) -> list[Path]:
    """Files meant by a path, a folder or a pattern, in the order of their names."""
    path = _example(str(source)) or Path(source)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
    elif path.exists():
        found = [path]
    else:
        found = sorted(Path(p) for p in glob.glob(str(source), recursive=True))
    if not found:
        raise TableError(f"{source}: there is no such file, and no CSV or Parquet file in it.")
    formats = {_format_of(p) for p in found}
    if len(formats) > 1:
        raise TableError(f"{source} holds both CSV and Parquet files; give one kind.")
    return found


def _example(source: str) -> Path | None:
    """Path of a table that ships with the package, such as ``example:conversions``."""
    if not source.startswith("example:"):
        return None
    path = EXAMPLES / f"{source.removeprefix('example:')}.csv"
    if not path.is_file():
        known = ", ".join(sorted(f"example:{p.stem}" for p in EXAMPLES.glob("*.csv")))
        raise TableError(f"There is no {source}; there are {known}.")
    return path


def _format_of(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise TableError(
            f"{path}: the name must end in {', '.join(SUFFIXES)}, got {path.suffix or 'nothing'!r}."
        )
    return SUFFIXES[path.suffix]


def _names_of(path: Path) -> list[str]:
    with _named(path):
        if _format_of(path) == "csv":
            _check_separator(path)
            with pacsv.open_csv(path, read_options=_csv_options(block_size=1 << 16)) as reader:
                names = list(reader.schema.names)
        else:
            names = list(pq.read_schema(path).names)
    _check_names(names, str(path))
    return names


def _check_separator(path: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as file:
        header = file.readline(1 << 16)
    for mark in ";\t|" if "," not in header else "":
        if mark in header:
            raise TableError(f"{path}, row 1: columns are separated by {mark!r}. Use commas.")


def _check_names(names: list[str], place: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{place}: column {twice[0]!r} comes more than once in the header.")
    if not names:
        raise TableError(f"{place}: there are no columns.")


def _check_same_columns(wanted: list[str], got: list[str], first: Path, other: Path) -> None:
    for name in sorted(set(wanted) ^ set(got)):
        has, lacks = (first, other) if name in wanted else (other, first)
        raise TableError(f"{lacks}: column {name!r} is missing, which {has} has.")


def _csv_options(*, block_size: int) -> pacsv.ReadOptions:
    # Without threads an error names its row.
    return pacsv.ReadOptions(use_threads=False, block_size=block_size)


def _read_csv(path: Path, names: list[str], columns: list[str], rows: int) -> Iterator[Chunk]:
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        include_columns=columns,
    )
    # About 8 bytes a value; a row longer than a block is an error.
    block_size = max(1 << 20, min(8 * rows * len(names), 1 << 25))
    options = _csv_options(block_size=block_size)
    row = 2
    with pacsv.open_csv(path, read_options=options, convert_options=convert) as reader:
        for batch in reader:
            yield Chunk(batch, str(path), row)
            row += batch.num_rows


def _read_parquet(
    path: Path, columns: list[str], rows: int, groups: Sequence[int] | None = None
) -> Iterator[Chunk]:
    row = 1
    # One row group at a time, buffered: a reader of several keeps what it has read.
    with pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False) as file:
        for group in range(file.num_row_groups):
            n_rows = file.metadata.row_group(group).num_rows
            if groups is not None and group not in groups:
                row += n_rows
                continue
            if n_rows <= rows:  # a tenth faster than in steps
                batches = file.read_row_group(group, columns).to_batches()
            else:
                batches = file.iter_batches(batch_size=rows, row_groups=[group], columns=columns)
            for batch in batches:
                yield Chunk(batch.select(columns), str(path), row)
                row += batch.num_rows


@contextmanager
def _named(path: Path, names: Sequence[str] = ()) -> Iterator[None]:
    """Give the errors of a reader the names of the file and of the column."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:300]
        bytes_of = re.match(r"In CSV column #(\d+): Row #(\d+): .*invalid UTF8", reason)
        if bytes_of and int(bytes_of[1]) < len(names):
            place = f"{path}, row {bytes_of[2]}, column {names[int(bytes_of[1])]!r}"
            raise TableError(f"{place}: the text is not UTF-8. Save the file as UTF-8.") from error
        raise TableError(f"{path} cannot be read: {reason}") from error
