"""Write a table chunk by chunk, or a page, atomically."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from unbag.errors import TableError
from unbag.frames.parsing import is_text
from unbag.tables.reading import TableSource

SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}

__all__ = ["TableWriter", "write_page", "write_table"]


class TableWriter:
    """Appends chunks to a CSV or Parquet file; the first one decides the columns."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind, self.rows = path, kind, 0
        self.writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Append some rows."""
        if self.writer is None:
            make = pacsv.CSVWriter if self.kind == "csv" else _parquet_writer
            self.writer = make(self.path, batch.schema)
        self.writer.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        """Finish the file."""
        if self.writer is not None:
            self.writer.close()


def _parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Without dictionaries for numbers: scores hardly repeat, and looking for it is slow."""
    repeated = [field.name for field in schema if is_text(field.type)]
    return pq.ParquetWriter(path, schema, use_dictionary=repeated)


@contextmanager
def write_table(
    path: str | Path, *, overwrite: bool = False, source: TableSource | None = None
) -> Iterator[TableWriter]:
    """Open a file for writing under a temporary name, and rename it at the end.

    After an error nothing is left, and a file that was there before is untouched.

    Parameters
    ----------
    path : path
    overwrite : bool
        Whether a file already there may be replaced.
    source : TableSource, optional
        Table that is read meanwhile; its files are never replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_table(Path(folder) / "out.csv") as writer:
    ...         writer.add(pa.record_batch({"x": [1, 2]}))
    ...     (Path(folder) / "out.csv").read_text()
    '"x"\\n1\\n2\\n'
    """
    path = Path(path)
    if any(path.exists() and path.samefile(read) for read in getattr(source, "paths", ())):
        raise TableError(f"{path} is a file of the table itself; choose another name.")
    part = _part(path, SUFFIXES, overwrite=overwrite)
    writer = TableWriter(part, SUFFIXES[path.suffix])
    try:
        yield writer
        writer.close()
        if not writer.rows:
            raise TableError("The table has no rows.")
        part.replace(path)
    finally:
        writer.close()
        part.unlink(missing_ok=True)


def write_page(path: str | Path, text: str, *, overwrite: bool = False) -> None:
    """Write an HTML page atomically."""
    part = _part(Path(path), (".html",), overwrite=overwrite)
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _part(path: Path, endings: Collection[str], *, overwrite: bool) -> Path:
    """Temporary name of an output that may be written."""
    if not path.parent.is_dir():
        raise TableError(f"{path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file.")
    if path.suffix not in endings:
        raise TableError(f"{path}: the output must end in {', '.join(endings)}.")
    if path.exists() and not overwrite:
        raise TableError(f"{path} exists already. Pass --overwrite to replace it.")
    return path.with_name(f".{path.name}.part")
