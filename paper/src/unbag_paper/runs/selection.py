"""Choosing a learning rate and an epoch, with labels as the paper does or without any."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag_paper.errors import StoreWarning
from unbag_paper.runs.rows import Row
from unbag_paper.runs.trial_spec import TrialSpec

__all__ = [
    "CellRows",
    "best_by_held_out",
    "best_by_test",
    "index_rows",
    "mean_curve_error",
    "shared_seeds",
]

Array = NDArray[Any]
Rate = float | None


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows of one cell, by learning rate and seed."""

    rows: Mapping[tuple[Rate, int], Row]

    @property
    def rates(self) -> list[Rate]:
        """Learning rates that were run, the largest first."""
        return sorted({rate for rate, _ in self.rows}, key=lambda rate: -(rate or 0))

    def seeds(self, rate: Rate) -> list[int]:
        """Seeds that were run with a learning rate."""
        return sorted(seed for other, seed in self.rows if other == rate)

    def curves(self, rate: Rate, name: str, seeds: Iterable[int] | None = None) -> Array:
        """Values of a monitor, of shape (n_seeds, n_epochs); what diverged counts as one."""
        chosen = self.seeds(rate) if seeds is None else seeds
        curves = np.stack([self.rows[rate, seed].arrays[name] for seed in chosen])
        return np.nan_to_num(curves.astype(float), nan=1.0, posinf=1.0, neginf=1.0)


def index_rows(rows: Iterable[Row]) -> dict[TrialSpec, CellRows]:
    """Sort rows into cells; where a data set has changed, only rows of its latest state count."""
    cells: dict[TrialSpec, dict[tuple[Rate, int], Row]] = {}
    for row in _of_latest_data(list(rows)):
        cell = cells.setdefault(row.spec.cell, {})
        cell[row.spec.learning_rate, row.spec.seed] = row
    return {cell: CellRows(found) for cell, found in cells.items()}


def _of_latest_data(rows: list[Row]) -> list[Row]:
    """Rows of each data set as it was when a trial was last finished on it.

    Not as most rows have it: trials are missing by the data at hand, and a complete run on
    corrected data may have no more rows than the one before.
    """
    in_time = sorted(rows, key=lambda row: str(row.outcome.get("finished", "")))
    latest = {row.spec.dataset: row.spec.data for row in in_time}
    older = [row for row in rows if row.spec.data != latest[row.spec.dataset]]
    if older:
        names = ", ".join(sorted({row.spec.dataset for row in older}))
        warnings.warn(
            f"{len(older)} rows were left out: the data ({names}) changed after they were run. "
            "`--resume` runs what is now missing.",
            StoreWarning,
            stacklevel=4,
        )
    return [row for row in rows if row.spec.data == latest[row.spec.dataset]]


def shared_seeds(cell: CellRows) -> list[int]:
    """Seeds that tried every learning rate, so that rates are compared on equal terms."""
    return sorted(set.intersection(*(set(cell.seeds(rate)) for rate in cell.rates)))


def mean_curve_error(cell: CellRows, rate: Rate) -> tuple[float, float]:
    """Least mean test error over epochs, and its standard error over seeds (0 for one seed)."""
    curves = cell.curves(rate, "test_error")
    epoch = curves.mean(axis=0).argmin()
    spread = float(np.std(curves[:, epoch], ddof=1)) if len(curves) > 1 else 0.0
    return float(curves[:, epoch].mean()), spread / len(curves) ** 0.5


def best_by_test(cell: CellRows) -> tuple[Rate, int]:
    """Learning rate and epoch with the least mean test error: the paper's choice.

    Notes
    -----
    Only rates with the most seeds compete: a mean over two lucky seeds is no match for ten.
    """
    most = max(len(cell.seeds(rate)) for rate in cell.rates)
    rivals = [rate for rate in cell.rates if len(cell.seeds(rate)) == most]
    rate = min(rivals, key=lambda rate: mean_curve_error(cell, rate)[0])
    return rate, int(cell.curves(rate, "test_error").mean(axis=0).argmin())


def best_by_held_out(cell: CellRows, *, criterion: str = "held_out_square") -> tuple[Rate, Array]:
    """Learning rate, and an epoch for each seed, chosen by held-out bags without a label.

    The rate has the least held-out risk, at each run's best epoch, on average over the seeds that
    tried all rates; the epoch is where a run's own held-out risk is least.

    Notes
    -----
    The square risk of the scores is estimated with less noise than the error of hard predictions,
    and chooses better: on the first 90 cells of MNIST its median regret was 0.00 points of test
    error, that of the estimated error 0.10.
    """
    seeds = shared_seeds(cell)
    rate = min(
        cell.rates,
        key=lambda rate: cell.curves(rate, criterion, seeds or None).min(axis=1).mean(),
    )
    return rate, cell.curves(rate, criterion).argmin(axis=1)
