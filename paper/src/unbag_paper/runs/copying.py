"""A copy of a store to read from, whether it is being written, read-only or damaged."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

__all__ = ["open_copy"]


@contextmanager
def open_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a copy of a database, which ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy_shared(path, Path(folder)) or _copy_files(path, Path(folder))
        with closing(sqlite3.connect(copy)) as database:
            yield database


def _copy_shared(path: Path, folder: Path) -> Path | None:
    """One state of a database that is perhaps being written, or None.

    Files are not enough there: what a checkpoint moves from the log to the database between the
    copy of one and the copy of the other would be in neither. Where nobody writes they are, and
    SQLite would leave a log and its index beside the file.
    """
    if not all(Path(f"{path}{ending}").is_file() for ending in ("-wal", "-shm")):
        return None
    copy = folder / "shared.sqlite"
    try:
        with (
            closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except sqlite3.Error:
        return None
    return copy


def _copy_files(path: Path, folder: Path) -> Path:
    copy = folder / "files.sqlite"
    for ending in ("", "-wal"):
        if (part := Path(f"{path}{ending}")).is_file():
            shutil.copyfile(part, f"{copy}{ending}")
    return copy
