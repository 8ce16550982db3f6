"""Write a table chunk by chunk, or a page, atomically."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from unbag.errors import TableError
from unbag.frames.parsing import is_text
from unbag.tables.reading import TableSource


def write_table(
    path: str | Path,
    batches: Iterable[pa.RecordBatch],
    *,
    overwrite: bool = False,
    source: TableSource | None = None,
) -> int:
    r"""Write batches to a CSV or Parquet file, and return the number of rows.

    After an error an existing file is unchanged. Files of `source` are never replaced.
    """
    path = Path(path)
    if any(path.exists() and path.samefile(read) for read in getattr(source, "paths", ())):
        raise TableError(f"{path} is a file of the table itself; choose another name.")
    with _replacing(path, SUFFIXES, overwrite=overwrite) as part:
        coming, n_rows = iter(batches), 0
        first = next(coming, None)
        if first is None:
            raise TableError("The table has no rows.")
        with SUFFIXES[path.suffix](part, first.schema) as writer:
            for batch in chain([first], coming):
                writer.write_batch(batch)
                n_rows += batch.num_rows
    return n_rows


def write_page(path: str | Path, text: str, *, overwrite: bool = False) -> None:
    """Write an HTML page atomically."""
    with _replacing(Path(path), (".html",), overwrite=overwrite) as part:
        part.write_text(text, encoding="utf-8")


def _parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Use no dictionaries for numbers: scores rarely repeat, and the search for repeats is slow."""
    repeated = [field.name for field in schema if is_text(field.type)]
    return pq.ParquetWriter(path, schema, use_dictionary=repeated)


SUFFIXES = {".csv": pacsv.CSVWriter, ".parquet": _parquet_writer, ".pq": _parquet_writer}


@contextmanager
def _replacing(path: Path, endings: Collection[str], *, overwrite: bool) -> Iterator[Path]:
    """Temporary path of an output, renamed at the end."""
    if not path.parent.is_dir():
        raise TableError(f"{path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file.")
    if path.suffix not in endings:
        raise TableError(f"{path}: the output must end in {', '.join(endings)}.")
    if path.exists() and not overwrite:
        raise TableError(f"{path} exists already. Pass --overwrite to replace it.")
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
