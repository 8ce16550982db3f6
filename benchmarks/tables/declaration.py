"""How a table of the suite is declared: where it is from, what is predicted, what makes groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sources import Source

LABEL = "label"
Part = Literal["tuning", "held-back", "final"]
IsPositive = Callable[[pd.Series], pd.Series]


def among(*values: Any) -> IsPositive:
    """Positive are these values."""
    return lambda column: column.isin(values)


def above(threshold: float) -> IsPositive:
    """Positive is what exceeds the threshold."""
    return lambda column: column > threshold


@dataclass(frozen=True)
class Table:
    """A table with a binary label.

    `groups` are the columns whose common values make a natural bag. ``"age//10"`` is a decade of
    age, ``"dist@100"`` one of 100 quantile bins. Columns in `drop` are no features: they repeat the
    label or are identifiers. They may still be named in `groups`.
    """

    name: str
    about: str
    part: Part
    source: Source
    target: str
    positive: IsPositive
    groups: tuple[str, ...]
    drop: tuple[str, ...] = ()

    def prepare(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Keep rows with a label, features, and the columns that make groups."""
        frame = frame[frame[self.target].notna()]
        label = self.positive(frame[self.target]).astype("int8")
        kept = {column_of(group) for group in self.groups}
        gone = [self.target, *(column for column in self.drop if column not in kept)]
        return frame.drop(columns=gone).assign(**{LABEL: label})

    def load(self, folder: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """Features, labels and the natural bag of every row, as `fetch.py` stored them."""
        frame = pd.read_parquet(folder / f"{self.name}.parquet")
        features = frame.drop(columns=[LABEL, *frame.columns.intersection(list(self.drop))])
        return features, frame[LABEL].to_numpy().astype(int), natural_bags(frame, self.groups)


def column_of(group: str) -> str:
    """The column that ``"age//10"`` or ``"dist@100"`` is about."""
    return group.split("//")[0].split("@")[0]


def natural_bags(frame: pd.DataFrame, groups: tuple[str, ...]) -> np.ndarray:
    """Number the combinations of values; a missing value is a value of its own."""
    keys = pd.concat([_group_key(frame, group) for group in groups], axis=1)
    return keys.groupby(list(keys), dropna=False, sort=True).ngroup().to_numpy()


def _group_key(frame: pd.DataFrame, group: str) -> pd.Series:
    column = frame[column_of(group)]
    if "//" in group:
        column = column // float(group.split("//")[1])
    if "@" in group:
        column = pd.qcut(column, int(group.split("@")[1]), labels=False, duplicates="drop")
    return column.rename(group)
