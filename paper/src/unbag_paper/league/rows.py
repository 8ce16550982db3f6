"""Finished runs of the league, and what is chosen in them: by the test set, by held-out bags."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from unbag_paper.league.spec import RunSpec
from unbag_paper.runs.rows import Row, Store

__all__ = ["Choice", "LeagueRow", "league_rows", "league_store", "runs_by_cell"]

Array = NDArray[Any]
Choice = Literal["test", "held_out", "last"]
"""Who chooses epoch and rate: test labels, held-out bags alone, or nobody: the last epoch."""


@dataclass(frozen=True, eq=False)
class LeagueRow:
    """A finished run: what defines it, how it was computed, what was measured."""

    spec: RunSpec
    outcome: dict[str, Any]
    arrays: dict[str, Array]

    def chosen(self, by: Choice) -> tuple[float, float]:
        """The criterion's least value, and the test error where it is least.

        Held-out bags are judged by the pairwise estimate of the error where bags are random, and
        by the cross entropy of their proportions where they are not. Without held-out bags the
        last epoch counts.
        """
        errors = self.arrays["test_error"]
        name = "held_out_error" if self.spec.bags == "random" else "held_out_log"
        if by == "last" or (by == "held_out" and name not in self.arrays):
            return 0.0, float(errors[-1])
        values = errors if by == "test" else self.arrays[name]
        place = int(np.nanargmin(values)) if np.isfinite(values).any() else -1
        return float(values[place]), float(errors[place])

    def best_error(self, by: Choice) -> float:
        """The criterion's least value."""
        return self.chosen(by)[0]


def league_store(folder: Path | str) -> Store:
    """The folder of runs, to add to."""
    return Store(folder, read_spec=RunSpec.from_json)


def league_rows(store: Store | Path | str) -> list[LeagueRow]:
    """All runs of a folder; none if it is not there."""
    rows: list[Row] = (store if isinstance(store, Store) else league_store(store)).rows()
    return [LeagueRow(cast(RunSpec, row.spec), row.outcome, row.arrays) for row in rows]


def runs_by_cell(rows: Iterable[LeagueRow]) -> dict[RunSpec, list[LeagueRow]]:
    """Runs of each cell."""
    found: dict[RunSpec, list[LeagueRow]] = {}
    for row in rows:
        found.setdefault(row.spec.cell, []).append(row)
    return found
