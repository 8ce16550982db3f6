"""Rows on disk: a finished trial is never lost, and no two processes run the same trial."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from unbag.errors import StoreError, StoreWarning
from unbag_paper.runs.owners import Owner, is_alive
from unbag_paper.runs.packing import Array, pack_arrays, unpack_arrays
from unbag_paper.runs.recovery import (
    COLUMNS,
    DAMAGE,
    Stored,
    checksum,
    count_torn_frames,
    is_whole,
    read_stored,
)
from unbag_paper.runs.spec import TrialSpec

__all__ = ["STORE_NAME", "Row", "Store", "read_rows"]

STORE_NAME = "rows.sqlite"

_TABLES = """
CREATE TABLE IF NOT EXISTS rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL, spec TEXT NOT NULL,
    outcome TEXT NOT NULL, arrays BLOB NOT NULL, checksum TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL);
"""


@dataclass(frozen=True, eq=False)
class Row:
    """A finished trial.

    Attributes
    ----------
    spec : TrialSpec
    outcome : dict
        How it was computed: seconds, device, commit, versions, when.
    arrays : dict of str to array
        One number for each epoch and monitor.
    """

    spec: TrialSpec
    outcome: dict[str, Any]
    arrays: dict[str, Array]

    def _stored(self) -> Stored:
        spec, outcome = self.spec.to_json(), json.dumps(self.outcome, sort_keys=True)
        arrays = pack_arrays(self.arrays)
        return self.spec.key, spec, outcome, arrays, checksum(spec, outcome, arrays)

    @classmethod
    def _read(cls, stored: Stored) -> Row:
        _, spec, outcome, arrays, _ = stored
        return cls(TrialSpec.from_json(spec), json.loads(outcome), unpack_arrays(arrays))


class Store:
    """Finished trials in one SQLite file, keyed by the hash of all that defines them.

    Parameters
    ----------
    path : path
        Made if it is not there.

    Notes
    -----
    `add` returns when the row is on the disk (write-ahead log, synchronous commits), so a process
    killed at any moment loses only what it had not finished. `claim` hands a trial to one live
    process; the claims of a dead one are void. Opening drops what a crash left half-written, with
    a `StoreWarning`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> spec = TrialSpec("mnist", "0f", "linear", "easy_log", 100, 10, 0.001, seed=0, epochs=2)
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/rows.sqlite") as store:
    ...     store.add([Row(spec, {"seconds": 1.5}, {"test_error": np.array([0.5, 0.25])})])
    ...     [row.arrays["test_error"] for row in store.rows()]
    [array([0.5 , 0.25], dtype=float32)]
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = count_torn_frames(Path(f"{self.path}-wal"))
        self._database = _connect(self.path)
        try:
            self._recover(torn)
        except DAMAGE as error:
            self._database.close()
            raise _cannot_open(self.path, error) from error
        self._owner = Owner(self.path)
        self._seen: dict[str, Row] = {}
        self._last = 0

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back all claims and fold the log into the file."""
        with self._transaction():
            self._database.execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
        self._database.close()
        self._owner.close()

    def add(self, rows: Iterable[Row]) -> None:
        """Write finished trials to the disk, and end their claims."""
        stored = [row._stored() for row in rows]
        with self._transaction():
            self._insert(stored)
            self._database.executemany("DELETE FROM claims WHERE key = ?", [s[:1] for s in stored])

    def rows(self) -> list[Row]:
        """All finished trials, those of other processes included."""
        query = f"SELECT id, {COLUMNS} FROM rows WHERE id > ? ORDER BY id"
        for number, *stored in self._database.execute(query, (self._last,)):
            self._last = number
            self._seen[stored[0]] = Row._read(tuple(stored))
        return list(self._seen.values())

    def keys(self) -> set[str]:
        """Keys of all finished trials."""
        self.rows()
        return set(self._seen)

    def claim(self, keys: Iterable[str]) -> set[str]:
        """Take the trials that are neither finished nor being run by a live process.

        Returns
        -------
        set of str
            Keys this process may now run.
        """
        wanted = set(keys)
        with self._transaction():
            done = {key for (key,) in self._database.execute("SELECT key FROM rows")}
            held = dict(self._database.execute("SELECT key, owner FROM claims"))
            alive = {o: o != self._owner.name and self._is_alive(o) for o in set(held.values())}
            mine = {k for k in wanted - done if not (k in held and alive[held[k]])}
            self._database.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?)", [(k, self._owner.name) for k in mine]
            )
        return mine

    def release(self, keys: Iterable[str]) -> None:
        """Give back claims on trials that were not run after all."""
        with self._transaction():
            self._database.executemany(
                "DELETE FROM claims WHERE key = ? AND owner = ?",
                [(key, self._owner.name) for key in keys],
            )

    def merge(self, other: Path | str, *, commit: str | None = None) -> int:
        """Take over the rows of another store; damaged ones are left out, with a warning.

        Parameters
        ----------
        other : path
        commit : str, optional
            Commit of the rows that do not know theirs, computed by a copy without its history.

        Returns
        -------
        int
            How many rows were new.
        """
        before = len(self.keys())
        good, n_damaged = read_stored(Path(other))
        if commit is not None:
            good = [_with_commit(stored, commit) for stored in good]
        with self._transaction():
            self._insert(good)
        if n_damaged:
            _warn(f"{other}: {n_damaged} damaged rows were left out; they will be run again.")
        return len(self.keys()) - before

    def compact(self) -> None:
        """Fold the log into the file and shrink it, before it is copied or committed."""
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.execute("VACUUM")
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _is_alive(self, owner: str) -> bool:
        return is_alive(self.path, owner)

    def _insert(self, stored: list[Stored]) -> None:
        self._database.executemany(
            f"INSERT OR IGNORE INTO rows ({COLUMNS}) VALUES (?, ?, ?, ?, ?)", stored
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def _recover(self, n_torn: int) -> None:
        with self._transaction():
            [(said,)] = self._database.execute("PRAGMA quick_check(1)")
            if said != "ok":
                raise sqlite3.DatabaseError(said.splitlines()[-1])
            everything = self._database.execute(f"SELECT id, {COLUMNS} FROM rows")
            bad = [(number,) for number, *stored in everything if not is_whole(tuple(stored))]
            if bad:  # their keys may no longer be those that the index has
                self._database.execute("REINDEX rows")
            self._database.executemany("DELETE FROM rows WHERE id = ?", bad)
        if n_torn or bad:
            _warn(
                f"{self.path} was cut off while being written: {n_torn} unfinished pages and "
                f"{len(bad)} damaged rows were dropped. All other rows are whole; `--resume` runs "
                "the missing trials."
            )


def read_rows(path: Path | str) -> list[Row]:
    """Rows of a store as it lies there, which is not touched; damaged ones are left out."""
    good, n_damaged = read_stored(Path(path))
    if n_damaged:
        _warn(f"{path}: {n_damaged} damaged rows were left out.")
    return [Row._read(stored) for stored in good]


def _connect(path: Path) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(path, isolation_level=None, timeout=60)
        # Damaged text is read all the same; the row's checksum then tells.
        database.text_factory = partial(str, encoding="utf-8", errors="replace")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")  # a commit returns after fsync
        database.executescript(_TABLES)
    except DAMAGE as error:
        raise _cannot_open(path, error) from error
    return database


def _cannot_open(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"{path} cannot be opened as a store ({error}). Move it away, and take over what can "
        "still be read with `unbag reproduce merge FILE`."
    )


def _with_commit(stored: Stored, commit: str) -> Stored:
    row = Row._read(stored)
    if row.outcome.get("commit", "unknown") != "unknown":
        return stored
    return Row(row.spec, row.outcome | {"commit": commit}, row.arrays)._stored()


def _warn(message: str) -> None:
    warnings.warn(message, StoreWarning, stacklevel=3)
