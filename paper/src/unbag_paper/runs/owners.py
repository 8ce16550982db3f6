"""Which processes are alive: each holds a lock that the system drops when the process dies."""

from __future__ import annotations

import sqlite3
import uuid
from pathlib import Path

__all__ = ["Owner", "is_alive", "owner_file"]


class Owner:
    """This process as an owner of claims.

    It holds an exclusive SQLite lock on a file of its own, which works on every system, needs no
    heartbeat, and ends with the process however that ends.

    Parameters
    ----------
    store : Path
        The file that claims are kept in; the owner's file lies beside it.
    """

    def __init__(self, store: Path) -> None:
        self.name = uuid.uuid4().hex
        self._file = owner_file(store, self.name)
        self._lock = sqlite3.connect(self._file, isolation_level=None)
        self._lock.execute("BEGIN EXCLUSIVE")

    def close(self) -> None:
        """Drop the lock and the file."""
        self._lock.close()
        self._file.unlink(missing_ok=True)


def owner_file(store: Path, name: str) -> Path:
    """The file an owner locks."""
    return Path(f"{store}.owner-{name}")


def is_alive(store: Path, name: str) -> bool:
    """Whether this owner still runs; the file of a dead one is removed."""
    file = owner_file(store, name)
    if not file.exists():
        return False
    probe = sqlite3.connect(file, isolation_level=None, timeout=0)
    try:
        probe.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        return True
    finally:
        probe.close()
    file.unlink(missing_ok=True)
    return False
