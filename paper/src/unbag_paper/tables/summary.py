"""What the rows of a cell say: errors by the paper's choice and by one made without labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from unbag_paper.runs.grid import Cell, Grid
from unbag_paper.runs.rows import Row
from unbag_paper.runs.selection import Array, CellRows, best_by_held_out, best_by_test, index_rows
from unbag_paper.tables.published import PAPER_SEEDS, published_error

__all__ = ["CellSummary", "LabelFreeErrors", "MeanWithError", "known_regrets", "summarize"]


@dataclass(frozen=True)
class MeanWithError:
    """A mean over seeds in percent, with its standard error (NaN for one seed).

    Examples
    --------
    >>> MeanWithError.of(np.array([0.01, 0.03]))
    MeanWithError(mean=2.0, standard_error=1.0, n_seeds=2)
    """

    mean: float
    standard_error: float
    n_seeds: int

    @classmethod
    def of(cls, errors: Array) -> MeanWithError:
        """From one error for each seed, as shares."""
        n = len(errors)
        spread = float(np.std(errors, ddof=1)) if n > 1 else float("nan")
        return cls(round(100 * float(np.mean(errors)), 6), round(100 * spread / n**0.5, 6), n)


@dataclass(frozen=True)
class LabelFreeErrors:
    """Errors of a cell's trained nets as bags of test instances show them, in percent.

    Attributes
    ----------
    estimate, truth : float
        Mean over the nets of the estimated and of the true error.
    width : float
        Mean width of the 95 % intervals.
    n, n_covered : int
        Nets that were measured, and those whose interval holds the truth.
    """

    estimate: float
    truth: float
    width: float
    n: int
    n_covered: int

    @classmethod
    def of(cls, found: Array) -> LabelFreeErrors:
        """From rows of estimate, lower end, upper end and truth, as shares.

        Examples
        --------
        >>> LabelFreeErrors.of(np.array([[0.1, 0.05, 0.15, 0.12], [0.3, 0.25, 0.35, 0.2]]))
        LabelFreeErrors(estimate=20.0, truth=16.0, width=10.0, n=2, n_covered=1)
        """
        value, low, high, truth = found.T.astype(float)
        covered = int(((low <= truth) & (truth <= high)).sum())
        estimate, true, width = (
            round(100 * float(np.mean(v)), 4) for v in (value, truth, high - low)
        )
        return cls(estimate, true, width, len(found), covered)


@dataclass(frozen=True)
class CellSummary:
    """One cell of a table.

    Attributes
    ----------
    cell : Cell
    learning_rate, epoch
        Chosen by the mean test error, as in the paper; epochs count from 1.
    best, last : MeanWithError
        Test error at that epoch, and at the last one.
    free_rate : float or None
        Learning rate chosen by held-out bags, without labels.
    free, free_whole : MeanWithError
        Error at the rate and epochs chosen without labels: on the half of the test set that was
        not used to choose, and on all of it.
    regret : float or None
        What choosing without labels costs, in points of error on the whole test set, over the
        seeds that both choices have; None if they share no seed.
    published : float or None
        The paper's number.
    label_free : LabelFreeErrors or None
        What bags of test instances say about all the cell's trained nets.
    """

    cell: Cell
    learning_rate: float | None
    epoch: int
    best: MeanWithError
    last: MeanWithError
    free_rate: float | None
    free: MeanWithError
    free_whole: MeanWithError
    regret: float | None
    published: float | None
    label_free: LabelFreeErrors | None = None

    @property
    def n_seeds(self) -> int:
        """Seeds behind `best` and `last`."""
        return self.best.n_seeds

    @property
    def difference(self) -> MeanWithError | None:
        """Best error minus the published one.

        The paper states no standard errors; its seeds are taken to spread as ours do.
        """
        if self.published is None:
            return None
        paper = self.best.standard_error * (self.n_seeds / PAPER_SEEDS) ** 0.5
        error = float(np.hypot(self.best.standard_error, paper))
        return MeanWithError(self.best.mean - self.published, error, self.n_seeds)


def summarize(grid: Grid, rows: Iterable[Row]) -> list[CellSummary]:
    """Summarise every cell of a grid that has rows."""
    found = index_rows(rows)
    cells = ((cell, found.get(cell.spec.cell)) for cell in grid.cells())
    return [_summary(cell, rows) for cell, rows in cells if rows is not None]


def known_regrets(cells: Iterable[CellSummary]) -> list[float]:
    """What choosing without labels costs in each cell where that can be said."""
    return [cell.regret for cell in cells if cell.regret is not None]


def _summary(cell: Cell, rows: CellRows) -> CellSummary:
    rate, epoch = best_by_test(rows)
    curves = rows.curves(rate, "test_error")
    free_rate, epochs = best_by_held_out(rows)
    each = np.arange(len(epochs))
    free_whole = rows.curves(free_rate, "test_error")[each, epochs]
    return CellSummary(
        cell=cell,
        learning_rate=rate,
        epoch=epoch + 1,
        best=MeanWithError.of(curves[:, epoch]),
        last=MeanWithError.of(curves[:, -1]),
        free_rate=free_rate,
        free=MeanWithError.of(rows.curves(free_rate, "second_half_error")[each, epochs]),
        free_whole=MeanWithError.of(free_whole),
        regret=_regret(
            dict(zip(rows.seeds(rate), curves[:, epoch], strict=True)),
            dict(zip(rows.seeds(free_rate), free_whole, strict=True)),
        ),
        published=published_error(cell.dataset, cell.bag_size, cell.model, cell.rule.label),
        label_free=_label_free(rows),
    )


def _regret(best: Mapping[int, float], free: Mapping[int, float]) -> float | None:
    """Mean difference in points, over the seeds of both, since seeds differ more than choices."""
    gaps = [free[seed] - best[seed] for seed in free.keys() & best.keys()]
    return round(100 * float(np.mean(gaps)), 6) if gaps else None


def _label_free(cell: CellRows) -> LabelFreeErrors | None:
    found = [
        row.arrays["error_from_bags"]
        for row in cell.rows.values()
        if "error_from_bags" in row.arrays
    ]
    return LabelFreeErrors.of(np.stack(found)) if found else None
