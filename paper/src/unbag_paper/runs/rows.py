"""Rows on disk: a folder of Parquet files, one for each finished stack of trials."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unbag_paper.errors import StoreError, StoreWarning
from unbag_paper.runs.trial_spec import TrialSpec

__all__ = ["STORE_NAME", "Array", "Row", "Store", "read_rows"]

Array = NDArray[Any]

STORE_NAME = "rows"
"""Name of the folder of rows inside a folder of results."""

# Merged rows are written in parts of this many: about 400 kB, so that no part passes 1 MB.
_ROWS_PER_MERGED_PART = 400
_TEXT = ("spec", "outcome")
# Shares of a test set repeat, so a dictionary packs them best; other curves share high bytes.
_REPEATING = ("test_error", "second_half_error")


@dataclass(frozen=True, eq=False)
class Row:
    """A finished trial.

    Attributes
    ----------
    spec : TrialSpec
    outcome : dict
        How it was computed: seconds, device, commit, versions, when.
    arrays : dict of str to array
        One number for each epoch and monitor; stored in single precision.
    """

    spec: TrialSpec
    outcome: dict[str, Any]
    arrays: dict[str, Array]


class Store:
    """Finished trials in a folder that is only ever added to.

    Parameters
    ----------
    folder : path
        Made with the first row if it is not there.
    read_spec : function
        Reads back what the `to_json` of a spec wrote.

    Notes
    -----
    Each call of `add` writes one part: under a temporary name, flushed to the disk, and renamed.
    A process killed at any moment leaves a whole part or none. Readers ignore temporary files.
    Several processes may add to one folder. A trial that two of them ran counts once: the part
    whose name comes first, which is the older one, is kept.

    Examples
    --------
    >>> import tempfile
    >>> spec = TrialSpec("mnist", "0f", "linear", "easy_log", 100, 10, 0.001, seed=0, epochs=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/rows")
    ...     store.add([Row(spec, {"seconds": 1.5}, {"test_error": np.array([0.5, 0.25])})])
    ...     [row.arrays["test_error"] for row in store.rows()]
    [array([0.5 , 0.25], dtype=float32)]
    """

    def __init__(
        self, folder: Path | str, *, read_spec: Callable[[str], Any] = TrialSpec.from_json
    ) -> None:
        self.folder, self.read_spec = Path(folder), read_spec
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(f"store must be a folder of rows, got the file {self.folder}.")
        self._parts: dict[str, list[Row]] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """Write finished trials to the disk as one part; returns when they are there."""
        if rows := list(rows):
            self.folder.mkdir(parents=True, exist_ok=True)
            _write_part(self.folder, rows)

    def rows(self) -> list[Row]:
        """All finished trials, those of other processes included; each trial once."""
        for path in sorted(self.folder.glob("*.parquet")):
            if path.name not in self._parts:
                self._parts[path.name] = _read_part(path, self.read_spec)
        found: dict[TrialSpec, Row] = {}
        for name in sorted(self._parts):
            for row in self._parts[name]:
                found.setdefault(row.spec, row)
        return list(found.values())

    def merge(self, other: Path | str, *, commit: str | None = None) -> int:
        """Add the rows of another folder that are not in this one.

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
        done = {row.spec for row in self.rows()}
        added = Store(existing_folder(other), read_spec=self.read_spec).rows()
        new = [_with_commit(row, commit) for row in added if row.spec not in done]
        for start in range(0, len(new), _ROWS_PER_MERGED_PART):
            self.add(new[start : start + _ROWS_PER_MERGED_PART])
        return len(new)


def read_rows(folder: Path | str) -> list[Row]:
    """Rows of a folder that must be there; changes nothing in it.

    Raises
    ------
    StoreError
        If there is no such folder.
    """
    return Store(existing_folder(folder)).rows()


def existing_folder(folder: Path | str) -> Path:
    """A folder of rows that must be there."""
    if not Path(folder).exists():
        raise StoreError(f"There is no store at {folder}.")
    return Path(folder)


def _with_commit(row: Row, commit: str | None) -> Row:
    if commit is None or row.outcome.get("commit", "unknown") != "unknown":
        return row
    return replace(row, outcome=row.outcome | {"commit": commit})


def _write_part(folder: Path, rows: Sequence[Row]) -> None:
    """Write a part so that it is either whole or not there."""
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{uuid4().hex[:8]}"
    temporary = folder / f".{name}.tmp"
    with temporary.open("xb") as file:
        _write_table(_as_table(rows), file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, folder / f"{name}.parquet")
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, on systems that open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _as_table(rows: Sequence[Row]) -> pa.Table:
    names = dict.fromkeys(name for row in rows for name in row.arrays)
    columns: dict[str, Any] = {
        "spec": pa.array([row.spec.to_json() for row in rows]),
        "outcome": pa.array([json.dumps(row.outcome, sort_keys=True) for row in rows]),
    }
    for name in names:
        curves = [_curve(name, row.arrays[name]) if name in row.arrays else None for row in rows]
        columns[name] = pa.array(curves, pa.list_(pa.float32()))
    return pa.table(columns)


def _curve(name: str, values: Array) -> Array:
    values = np.asarray(values, dtype=np.float32)
    if values.ndim != 1 or name in _TEXT:
        raise ValueError(
            f"arrays must have one axis and a name other than {' and '.join(_TEXT)}, got "
            f"{name!r} of shape {values.shape}. Store each axis under a name of its own."
        )
    return values


def _write_table(table: pa.Table, file: Any) -> None:
    curves = [name for name in table.column_names if name not in _TEXT]
    pq.write_table(
        table,
        file,
        compression="zstd",
        compression_level=19,
        use_dictionary=[*_TEXT, *(f"{name}.list.element" for name in curves if name in _REPEATING)],
        use_byte_stream_split=[f"{name}.list.element" for name in curves if name not in _REPEATING],
        write_page_checksum=True,
    )


def _read_part(path: Path, read_spec: Callable[[str], Any]) -> list[Row]:
    """Rows of a part; none, with a warning, if the disk has damaged it."""
    try:
        # Opened here, so that the file is closed whatever the reader meets in it.
        with path.open("rb") as file:
            table = pq.read_table(file, page_checksum_verification=True)
        curves = {name: table[name].to_numpy() for name in table.column_names if name not in _TEXT}
        return [
            Row(
                read_spec(spec),
                json.loads(outcome),
                {name: every[i] for name, every in curves.items() if every[i] is not None},
            )
            for i, (spec, outcome) in enumerate(
                zip(table["spec"].to_pylist(), table["outcome"].to_pylist(), strict=True)
            )
        ]
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        warnings.warn(
            f"{path} cannot be read as rows ({error}). Its trials are left out: bring back a copy "
            "of the file, or delete it and run them again with --resume.",
            StoreWarning,
            stacklevel=3,
        )
        return []
