"""The page of a table of the league: accuracies with both ways to choose; what was not run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbag_paper.league.grid import LeagueGrid
from unbag_paper.league.rows import Choice, LeagueRow, runs_by_cell
from unbag_paper.league.spec import Kind, RunSpec
from unbag_paper.tables.rendering import Table, Text, render

__all__ = ["league_page"]

NOT_RUN = "not run"
_KINDS = {"random": "Random bags", "clusters": "Bags of similar images"}
_COLUMNS: tuple[tuple[Choice, str], ...] = (
    ("test", "test"),
    ("held_out", "held-out"),
    ("last", "last"),
)


def league_page(grid: LeagueGrid, rows: Sequence[LeagueRow]) -> str:
    """Render a table as Markdown, from the runs that are there.

    Parameters
    ----------
    grid : LeagueGrid
    rows : sequence of LeagueRow
    """
    found = runs_by_cell(rows)
    cells = list(grid.cells())
    done = sum(cell in found for cell in cells)
    parts: list[Table | str] = [
        f"{done} of {len(cells)} cells have a run. Net {grid.net}, {grid.epochs} epochs, batches "
        f"of {grid.images_per_batch} images, {grid.held_out:.0%} of the bags held out. Accuracy on "
        "the test set in percent, mean over seeds with its standard error and the number of seeds. "
        "Columns say who chose rate and epoch, for each seed by itself: the test set, as most "
        "publications do; held-out bags alone; or nobody, which is the last epoch of the rate that "
        "held-out bags chose.",
    ]
    parts += [_table(grid, kind, found) for kind in grid.bags]
    parts.append(_costs(grid, found))
    return render(grid.title, parts, format="md")


def _table(grid: LeagueGrid, kind: Kind, found: dict[RunSpec, list[LeagueRow]]) -> Table:
    header = ["method", *(f"{k}, {name}" for k in grid.bag_sizes for _, name in _COLUMNS)]
    lines = []
    for method in grid.methods:
        cells = [found.get(grid.cell(method, kind, size), []) for size in grid.bag_sizes]
        texts = [accuracy(runs, by) for runs in cells for by, _ in _COLUMNS]
        lines.append((Text(_label(method)), *map(Text, texts)))
    if kind == "random":
        lines += [_given(label, values, grid) for label, values in grid.published.items()]
        if grid.goal:
            lines.append(_given("goal", grid.goal, grid))
    return Table(f"{_KINDS[kind]}.", tuple(header), tuple(lines))


def _given(label: str, values: object, grid: LeagueGrid) -> tuple[Text, ...]:
    """Numbers of others; most of them were chosen on the test set."""
    known = dict(values)  # type: ignore[call-overload]
    texts = [[f"{known[str(k)]:g}" if str(k) in known else "-", "", ""] for k in grid.bag_sizes]
    name = label if label == "goal" else f"{label}, as published"
    return (Text(name), *(Text(text) for three in texts for text in three))


def _label(method: str) -> str:
    from unbag_paper.league.methods import METHODS

    return METHODS[method].label


def accuracy(runs: Sequence[LeagueRow], by: Choice) -> str:
    """Mean over seeds of the accuracy where a criterion is best.

    The last epoch is that of the rate which held-out bags chose.
    """
    of_seed: dict[int, list[LeagueRow]] = {}
    for run in runs:
        of_seed.setdefault(run.spec.seed, []).append(run)
    if not of_seed:
        return NOT_RUN
    judge: Choice = "held_out" if by == "last" else by
    best = [min(own, key=lambda run: run.best_error(judge)) for own in of_seed.values()]
    values = 100 * (1 - np.array([run.chosen(by)[1] for run in best]))
    if len(values) == 1:
        return f"{values[0]:.1f} (1)"
    return f"{values.mean():.1f} ± {values.std(ddof=1) / len(values) ** 0.5:.1f} ({len(values)})"


def _costs(grid: LeagueGrid, found: dict[RunSpec, list[LeagueRow]]) -> Table:
    """Minutes of a run, with how many beside it on which device."""
    lines = []
    for method in grid.methods:
        runs = [
            run for cell in grid.cells() if cell.method == method for run in found.get(cell, [])
        ]
        minutes = [run.outcome["seconds"] / 60 for run in runs]
        beside = sorted({run.outcome.get("workers", 1) for run in runs})
        devices = sorted({str(run.outcome.get("device")) for run in runs})
        texts = (
            f"{np.mean(minutes):.1f}" if runs else NOT_RUN,
            ", ".join(map(str, beside)),
            ", ".join(devices),
        )
        lines.append((Text(_label(method)), Text(str(len(runs))), *map(Text, texts)))
    header = ("method", "runs", "minutes a run", "runs at once", "device")
    return Table("Cost.", header, tuple(lines))
