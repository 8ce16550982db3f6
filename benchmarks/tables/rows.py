"""Rows of results: a CSV file that only grows."""

from __future__ import annotations

import csv
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

KEY = ["table", "bags", "draw", "method"]


@dataclass(frozen=True, order=True)
class Job:
    """One method on one cell: the key of a row."""

    table: str
    bags: str
    draw: int
    method: str


@dataclass(frozen=True)
class Row(Job):
    """What came out of a job."""

    n_train: int = 0
    n_bags: int = 0
    n_test: int = 0
    n_positive: int = 0  # of the test rows
    auc: float = np.nan
    brier: float = np.nan
    error: float = np.nan
    log_loss: float = np.nan
    seconds: float = np.nan
    stated: float = np.nan
    low: float = np.nan
    high: float = np.nan
    sources: str = ""
    failed: str = ""


def read_rows(path: Path) -> pd.DataFrame:
    """Rows of a file; of those of one job, the last."""
    if not path.exists():
        return pd.DataFrame(columns=[field.name for field in fields(Row)])
    frame = pd.read_csv(path, dtype={"bags": str, "sources": str, "failed": str})
    return frame.drop_duplicates(KEY, keep="last")


def done(path: Path) -> set[Job]:
    """Jobs that need not run again."""
    frame = read_rows(path)
    frame = frame[frame["failed"].isna()]
    return {Job(*key) for key in zip(*(frame[name] for name in KEY), strict=True)}


def append_row(path: Path, row: Row) -> None:
    """Add a row, with five digits, and names of columns to a new file."""
    new = not path.exists()
    values = [f"{v:.5g}" if isinstance(v, float) else v for v in astuple(row)]
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(field.name for field in fields(Row))
        writer.writerow("" if value == "nan" else value for value in values)
