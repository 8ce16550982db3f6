"""Find the files of a path or pattern, their format, and columns in the names of folders."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from unbag.errors import TableError

__all__ = ["data_suffix", "find_files", "format_of", "partition_of"]

FORMATS = {
    **{".csv": "CSV", ".tsv": "CSV", ".parquet": "Parquet", ".pq": "Parquet"},
    **{".feather": "Arrow", ".arrow": "Arrow", ".ipc": "Arrow"},
    **{".jsonl": "JSON", ".ndjson": "JSON"},
}
COMPRESSED = (".gz", ".bz2", ".zst")  # CSV and JSON only; the others compress by themselves
EXAMPLES = Path(__file__).parents[1] / "datasets" / "examples"
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def find_files(source: str | Path) -> list[Path]:
    """Files meant by a path, a folder or a pattern, in the order of their names."""
    path = _example(str(source)) or Path(source)
    if path.is_dir():
        files = (p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))
        found = sorted(p for p in files if data_suffix(p) in FORMATS)
    elif path.exists():
        found = [path]
    else:
        found = sorted(Path(p) for p in glob.glob(str(source), recursive=True))
    if not found:
        raise TableError(f"{source}: there is no such file, and no table in it.")
    formats = sorted({format_of(p) for p in found})
    if len(formats) > 1:
        raise TableError(f"{source} holds both {' and '.join(formats)} files; give one kind.")
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


def data_suffix(path: Path) -> str:
    """Ending of a name without that of its compression."""
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
