"""Read tables chunk by chunk: CSV, Parquet, Arrow and JSON lines, folders and patterns of files."""

from __future__ import annotations

import codecs
import glob
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as pq

from unbag.errors import TableError
from unbag.frames.chunks import CHUNK_ROWS, Chunk, TableInMemory, check_header, prefetch

FORMATS = {
    **{".csv": "CSV", ".tsv": "CSV", ".parquet": "Parquet", ".pq": "Parquet"},
    **{".feather": "Arrow", ".arrow": "Arrow", ".ipc": "Arrow"},
    **{".jsonl": "JSON", ".ndjson": "JSON"},
}
COMPRESSED = (".gz", ".bz2", ".zst")  # CSV and JSON; the other formats compress by themselves
EXAMPLES = Path(__file__).parents[1] / "datasets" / "examples"
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def find_files(source: str | Path) -> list[Path]:
    """Files of a path, a folder or a pattern, sorted by name."""
    path = _example(str(source)) or Path(source)
    if path.is_dir():
        files = (p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))
        found = sorted(p for p in files if data_suffix(p) in FORMATS)
    elif path.exists():
        found = [path]
    else:
        found = sorted(Path(p) for p in glob.glob(str(source), recursive=True))
    if not found:
        raise TableError(f"{source}: no such file, or a folder without tables.")
    formats = sorted({format_of(p) for p in found})
    if len(formats) > 1:
        raise TableError(f"{source} contains both {' and '.join(formats)} files; use one format.")
    return found


def _example(source: str) -> Path | None:
    """Path of a table that ships with the package, such as ``example:conversions``."""
    if not source.startswith("example:"):
        return None
    path = EXAMPLES / f"{source.removeprefix('example:')}.csv"
    if not path.is_file():
        known = ", ".join(sorted(f"example:{p.stem}" for p in EXAMPLES.glob("*.csv")))
        raise TableError(f"There is no {source}. Available: {known}.")
    return path


def data_suffix(path: Path) -> str:
    """Suffix of a name without that of its compression."""
    return Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix


def format_of(path: Path) -> str:
    kind = FORMATS.get(data_suffix(path))
    if kind is None or (path.suffix in COMPRESSED and kind not in ("CSV", "JSON")):
        raise TableError(
            f"{path}: the name must end in {', '.join(FORMATS)}, or .csv.gz and the like, got "
            f"{path.suffix or 'nothing'!r}."
        )
    return kind


def partition_of(path: Path, root: Path | None, columns: Sequence[str]) -> dict[str, str | None]:
    """Values of the folders named ``column=value`` above a file."""
    if root is None:
        return {}
    parts = path.relative_to(root).parts if root.is_dir() else path.parts
    pairs = [part.partition("=") for part in parts[:-1] if "=" in part]
    values = {unquote(name): unquote(value) for name, _, value in pairs}
    return {n: None if v == NO_VALUE else v for n, v in values.items() if n not in columns}


SEPARATORS = ",;\t|"
HEADER_BYTES, JSON_BYTES = 1 << 16, 1 << 24
INTEGER = r"^(0|-?[1-9]\d{0,17})$"


class TableFiles:
    """Files of one format and one set of columns, read one after the other.

    CSV columns are read as text; their type is decided later, from all rows. Folders named
    ``column=value`` below `root` add a column.
    """

    def __init__(
        self, paths: Sequence[Path], *, root: Path | None = None, chunk_rows: int = CHUNK_ROWS
    ) -> None:
        self.paths, self.chunk_rows = list(paths), chunk_rows
        self.format = format_of(self.paths[0])
        self.columns = _names_of(self.paths[0])
        self.partitions = {path: partition_of(path, root, self.columns) for path in self.paths}
        self.names = [*self.columns, *self.partitions[self.paths[0]]]
        check_header(self.names, str(self.paths[0]))
        for path in self.paths[1:]:
            for name in sorted(set(self.names) ^ {*_names_of(path), *self.partitions[path]}):
                has, lacks = (self.paths[0], path) if name in self.names else (path, self.paths[0])
                raise TableError(f"{lacks}: column {name!r} is missing, which {has} has.")

    def reads_text(self, column: str) -> bool:
        """Whether a column is always read as text."""
        return self.format == "CSV" or column not in self.columns

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """Read these columns, or all."""
        wanted = self.names if columns is None else list(columns)
        for path in self.paths:
            extra, row = self.partitions[path], 2 if self.format == "CSV" else 1
            stored = [name for name in wanted if name not in extra]
            batches = prefetch(self._batches(path, stored or self.columns[:1]))
            with _named(path, self.columns):
                for batch in batches:
                    full = batch if stored == wanted else _with_constants(batch, extra, wanted)
                    yield Chunk(full, str(path), row)
                    row += batch.num_rows

    def _batches(self, path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
        if self.format == "CSV":
            return _read_csv(path, self.columns, columns, self.chunk_rows)
        read = {"Parquet": _read_parquet, "Arrow": _read_arrow, "JSON": _read_json}[self.format]
        return read(path, columns, self.chunk_rows)


TableSource = TableFiles | TableInMemory


def open_table(source: Any, *, chunk_rows: int = CHUNK_ROWS) -> TableSource:
    """Open a table for reading.

    `source` is a file, a folder of files, or a pattern such as ``"part-*.parquet"``; a bundled
    table such as ``"example:conversions"``; or a pyarrow, pandas or polars table. Files are CSV
    with any separator, TSV, Parquet, Feather or Arrow, and JSON lines; CSV and JSON may be
    compressed (gz, bz2, zst). Folders named ``column=value`` become a column.
    """
    if isinstance(source, (TableFiles, TableInMemory)):
        return source
    if isinstance(source, (str, Path)):
        paths = find_files(source)
        root = None if paths == [Path(source)] else Path(source)
        return TableFiles(paths, root=root, chunk_rows=chunk_rows)
    return TableInMemory(source, chunk_rows=chunk_rows)


def integer_columns(source: TableSource, names: Sequence[str]) -> list[str]:
    """Text columns in which every value is a plain integer, without leading zeros."""
    found = [n for n in names if isinstance(source, TableFiles) and source.reads_text(n)]
    for chunk in source.chunks(found) if found else ():
        columns = {name: chunk.batch.column(name) for name in found}
        found = [
            n for n, v in columns.items() if pc.all(pc.match_substring_regex(v, INTEGER)).as_py()
        ]
    return found


def _with_constants(
    batch: pa.RecordBatch, values: dict[str, str | None], columns: list[str]
) -> pa.RecordBatch:
    constants = {n: pa.repeat(pa.scalar(v, pa.string()), batch.num_rows) for n, v in values.items()}
    return pa.record_batch({n: constants[n] if n in values else batch.column(n) for n in columns})


def _names_of(path: Path) -> list[str]:
    kind = format_of(path)
    with _named(path):
        if kind == "Parquet":
            return list(pq.read_schema(path).names)
        if kind == "CSV":
            options = {"parse_options": _separated(path), "read_options": _blocks(HEADER_BYTES)}
            with pacsv.open_csv(path, **options) as reader:
                return list(reader.schema.names)
        if kind == "Arrow":
            with pa.memory_map(str(path)) as file:
                return list(_open_arrow(file).schema.names)
        return next(_json_blocks(path)).column_names


def _separated(path: Path) -> pacsv.ParseOptions:
    """The most frequent separator of the header, outside quotes."""
    if data_suffix(path) == ".tsv":
        return pacsv.ParseOptions(delimiter="\t")
    with pa.input_stream(str(path), compression="detect") as stream:
        start = stream.read(HEADER_BYTES)
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):  # as spreadsheets save "Unicode"
        raise TableError(f"{path}: the text is not UTF-8 but UTF-16. Save the file as UTF-8.")
    header = start.decode("utf-8", "replace").partition("\n")[0]
    outside = re.sub(r'"[^"]*"', "", header)
    return pacsv.ParseOptions(delimiter=max(SEPARATORS, key=outside.count))


def _blocks(size: int) -> pacsv.ReadOptions:
    # Without threads an error names its row.
    return pacsv.ReadOptions(use_threads=False, block_size=size)


def _read_csv(
    path: Path, names: list[str], columns: list[str], rows: int
) -> Iterator[pa.RecordBatch]:
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        include_columns=columns,
    )
    # About 8 bytes a value; a row longer than a block is an error.
    blocks = _blocks(max(1 << 20, min(8 * rows * len(names), 1 << 25)))
    options = {"read_options": blocks, "parse_options": _separated(path)}
    with pacsv.open_csv(path, convert_options=convert, **options) as reader:
        yield from reader


def _open_arrow(file: Any) -> Any:
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _read_arrow(path: Path, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as file:
        reader = _open_arrow(file)
        stored = hasattr(reader, "get_batch")
        batches = map(reader.get_batch, range(reader.num_record_batches)) if stored else reader
        for batch in batches:
            chosen = batch.select(columns)
            for start in range(0, batch.num_rows, rows):
                yield chosen.slice(start, rows)


def _json_blocks(path: Path) -> Iterator[pa.Table]:
    """Whole lines, some megabytes at a time; types are inferred for each block."""
    with (
        pa.input_stream(str(path), compression="detect") as stream,
        io.BufferedReader(stream) as file,
    ):
        while block := b"".join(file.readlines(JSON_BYTES)):
            yield pajson.read_json(pa.BufferReader(block))


def _read_json(path: Path, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    for table in _json_blocks(path):
        absent = {name: pa.nulls(len(table)) for name in columns if name not in table.column_names}
        full = pa.table({n: absent[n] if n in absent else table[n] for n in columns})
        yield from full.combine_chunks().to_batches(max_chunksize=rows)


def _read_parquet(path: Path, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    # One row group at a time, buffered: a reader of several keeps what it has read.
    with pq.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False) as file:
        for group in range(file.num_row_groups):
            if file.metadata.row_group(group).num_rows <= rows:  # a tenth faster than in steps
                batches = file.read_row_group(group, columns).to_batches()
            else:
                batches = file.iter_batches(batch_size=rows, row_groups=[group], columns=columns)
            for batch in batches:
                yield batch.select(columns)


@contextmanager
def _named(path: Path, names: Sequence[str] = ()) -> Iterator[None]:
    """Add the file, and the column if known, to the errors of a reader."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, StopIteration) as error:
        reason = " ".join(str(error).split())[:300] or "the file is empty"
        bytes_of = re.match(r"In CSV column #(\d+): Row #(\d+): .*invalid UTF8", reason)
        if bytes_of and int(bytes_of[1]) < len(names):
            place = f"{path}, row {bytes_of[2]}, column {names[int(bytes_of[1])]!r}"
            raise TableError(f"{place}: the text is not UTF-8. Save the file as UTF-8.") from error
        raise TableError(f"{path} cannot be read: {reason}") from error
