"""Which trials an experiment still needs: `paper` runs all, `lean` only what decides a cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from unbag_paper.runs.grid import Cell, Grid
from unbag_paper.runs.rows import Row
from unbag_paper.runs.selection import (
    CellRows,
    Rate,
    best_by_held_out,
    best_by_test,
    index_rows,
    mean_curve_error,
)
from unbag_paper.runs.trial_spec import TrialSpec

__all__ = ["Phase", "Protocol", "count_planned", "missing_trials"]

Protocol = Literal["paper", "lean"]
Phase = Literal["search", "confirm", "label_free"]

_PHASES: tuple[Phase, ...] = ("search", "confirm", "label_free")


@dataclass(frozen=True)
class Lean:
    """Every learning rate on `search_seeds` seeds, then the other seeds of the winner.

    Where the winner disappoints by more than its standard error, the next best is confirmed too.
    With `label_free`, also those of the winner by held-out bags, where that is another one.
    """

    search_seeds: int = 2
    label_free: bool = True

    def phases(self, cell: Cell, data: str, found: CellRows | None) -> Iterator[list[TrialSpec]]:
        """Trials of each phase that can be known from the rows found so far."""
        alone = len(cell.learning_rates) == 1  # nothing to search
        n_search = len(cell.seeds) if alone else self.search_seeds
        few, more = cell.seeds[:n_search], cell.seeds[n_search:]
        search = [cell.trial(rate, seed, data) for seed in few for rate in cell.learning_rates]
        yield search
        done = {} if found is None else found.rows
        if alone or found is None or any((t.learning_rate, t.seed) not in done for t in search):
            return
        few_rows = CellRows({key: row for key, row in found.rows.items() if key[1] in few})
        winner = _next_to_confirm(found, best_by_test(few_rows)[0], n_seeds=len(cell.seeds))
        yield [cell.trial(rate, seed, data) for rate in winner for seed in more]
        other, _ = best_by_held_out(few_rows)
        if self.label_free:
            yield [cell.trial(other, seed, data) for seed in more]


def _next_to_confirm(found: CellRows, winner: Rate, *, n_seeds: int) -> list[Rate]:
    """The winner of the search; once confirmed, a rate that now looks better by a standard error.

    Two seeds can be lucky: where some runs diverge, the winner's mean over all seeds may be far
    worse than another rate's over two.
    """
    confirmed = [rate for rate in found.rates if len(found.seeds(rate)) >= n_seeds]
    if winner not in confirmed:
        return [winner]
    best, error = min(mean_curve_error(found, rate) for rate in confirmed)
    rivals = [rate for rate in found.rates if rate not in confirmed]
    better = [r for r in rivals if mean_curve_error(found, r)[0] < best - error]
    return sorted(better, key=lambda rate: mean_curve_error(found, rate)[0])[:1]


@dataclass(frozen=True)
class Full:
    """Every learning rate on every seed."""

    def phases(self, cell: Cell, data: str, found: CellRows | None) -> Iterator[list[TrialSpec]]:
        """All trials, seed by seed."""
        yield [cell.trial(rate, seed, data) for seed in cell.seeds for rate in cell.learning_rates]


def missing_trials(
    grids: Iterable[Grid],
    rows: Iterable[Row],
    *,
    data: Mapping[str, str],
    protocol: Protocol = "lean",
    label_free: bool = True,
) -> list[TrialSpec]:
    """Trials that are still to be run, in the order they should be.

    Parameters
    ----------
    grids : iterable of Grid
    rows : iterable of Row
        What is finished.
    data : mapping
        Fingerprint of each data set.
    protocol : {"paper", "lean"}
    label_free : bool
        Whether `lean` also confirms the learning rate chosen without labels.

    Returns
    -------
    list of TrialSpec
        Search trials of all cells come before what confirms their winners.
    """
    rows = list(rows)
    done = {row.spec for row in rows}
    plan = Full() if protocol == "paper" else Lean(label_free=label_free)
    phases: list[list[TrialSpec]] = [[] for _ in _PHASES]
    cells = index_rows(row for row in rows if row.spec.data == data.get(row.spec.dataset))
    for grid in grids:
        for cell in grid.cells():
            found = cells.get(cell.spec.cell)
            for phase, trials in zip(phases, plan.phases(cell, data[cell.dataset], found)):  # noqa: B905
                phase += [trial for trial in trials if trial not in done]
    return list(dict.fromkeys(trial for phase in phases for trial in phase))


def count_planned(grid: Grid, *, protocol: Protocol = "lean") -> int:
    """Trials of a whole grid; in `lean`, without those that confirm a label-free winner.

    Examples
    --------
    >>> from unbag_paper.runs.grid import load_grids
    >>> [grid] = load_grids("mnist")
    >>> count_planned(grid, protocol="paper")
    6480
    """
    few = len(grid.seeds) if protocol == "paper" else min(Lean.search_seeds, len(grid.seeds))
    return sum(few * len(cell.learning_rates) + len(cell.seeds) - few for cell in grid.cells())
