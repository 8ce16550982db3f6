"""What a crash left behind in a store: writes that were cut off, and rows that are damaged."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from pathlib import Path
from typing import Any

from unbag.errors import StoreError
from unbag_paper.runs.copying import open_copy

__all__ = [
    "COLUMNS",
    "DAMAGE",
    "Stored",
    "checksum",
    "count_torn_frames",
    "is_whole",
    "read_stored",
]

COLUMNS = "key, spec, outcome, arrays, checksum"
Stored = tuple[str, str, str, bytes, str]

DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What is raised on damaged pages; the latter, where SQLite's own message quotes them."""

# The layout of SQLite's write-ahead log: a header of 32 bytes with the page size at 8 and two
# salts at 16; then frames, each of 24 bytes (page, pages after commit or 0, salts, checksum) and
# one page. See "WAL File Format" in SQLite's documentation.
_HEADER, _FRAME = 32, 24


def count_torn_frames(log: Path) -> int:
    """Count pages at the end of a write-ahead log that no commit ever covered.

    Parameters
    ----------
    log : Path
        The file ending in ``-wal``; it need not exist.

    Notes
    -----
    SQLite itself drops these pages when it next opens the file, without a word. To be called
    before that. Pages with another salt are leftovers of an earlier round, and not torn.
    """
    raw = log.read_bytes() if log.exists() else b""
    if len(raw) < _HEADER:
        return 0
    page_size, salts = struct.unpack(">I", raw[8:12])[0], raw[16:24]
    torn, position = 0, _HEADER
    while position < len(raw):
        frame = raw[position : position + _FRAME]
        whole = len(raw) - position >= _FRAME + page_size
        if len(frame) >= 16 and frame[8:16] != salts:
            break
        committed = whole and struct.unpack(">I", frame[4:8])[0] > 0
        torn = 0 if committed else torn + 1
        position += _FRAME + page_size
    return torn


def checksum(spec: str, outcome: str, arrays: bytes) -> str:
    """What is stored with a row, so that damage shows."""
    return hashlib.sha256(b"\0".join([spec.encode(), outcome.encode(), arrays])).hexdigest()[:32]


def is_whole(stored: Stored) -> bool:
    """Whether a row is as it was written."""
    _, spec, outcome, arrays, noted = stored
    try:
        return noted == checksum(spec, outcome, arrays)
    except (AttributeError, TypeError):  # damage can change even the type of a value
        return False


def read_stored(path: Path) -> tuple[list[Stored], int]:
    """Whole rows of a store, and how many are damaged; a copy is read, row by row."""
    if not path.is_file():
        raise StoreError(f"There is no store at {path}.")
    try:
        with open_copy(path) as database:
            (last,) = database.execute("SELECT max(id) FROM rows").fetchone()
            read = [_read_row(database, number) for number in range(1, (last or 0) + 1)]
    except DAMAGE as error:
        raise StoreError(f"{path} cannot be read as a store: {error}.") from error
    found = [stored for stored in read if stored is not None]
    good = [stored for stored in found if is_whole(stored)]
    return good, len(found) - len(good)


def _read_row(database: sqlite3.Connection, number: int) -> Any:
    try:
        query = f"SELECT {COLUMNS} FROM rows WHERE id = ?"
        return database.execute(query, (number,)).fetchone()
    except DAMAGE:
        return ("", "", "", b"", "unreadable")
