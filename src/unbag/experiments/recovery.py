"""What a crash left behind in a store: writes that were cut off, and rows that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path

__all__ = ["count_torn_frames"]

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
