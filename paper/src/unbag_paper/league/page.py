"""The page of a table of the league: accuracies with both ways to choose; what was not run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from unbag_paper.league.grid import LeagueGrid
from unbag_paper.league.rows import Choice, LeagueRow, runs_by_cell
from unbag_paper.league.spec import Kind, RunSpec
from unbag_paper.tables.rendering import Table, Text, render

__all__ = ["league_page"]

NOT_RUN = "not run"
_KINDS = {"random": "Random bags", "clusters": "Bags of similar images"}
_CHOICES: tuple[tuple[Choice, str], ...] = (
    ("test", "test set"),
    ("held_out", "held-out bags"),
    ("last", "last epoch"),
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
        "Rate and epoch are chosen for each seed by itself: by the test set, as most publications "
        "do, or by held-out bags alone. The last epoch is that of the rate which held-out bags "
        "chose.",
    ]
    parts += [_table(grid, kind, found) for kind in grid.bags]
    parts.append(_costs(grid, found))
    others = _other_runs(grid, rows)
    parts += [others] if others.rows else []
    return render(grid.title, parts, format="md")


def _table(grid: LeagueGrid, kind: Kind, found: dict[RunSpec, list[LeagueRow]]) -> Table:
    choices = [c for c in _CHOICES if grid.held_out or c[0] != "held_out"]
    lines = []
    for method in grid.methods:
        cells = [found.get(grid.cell(method, kind, size), []) for size in grid.bag_sizes]
        if not any(cells):
            lines.append(tuple(map(Text, [_label(method), "-", *[NOT_RUN] * len(cells)])))
            continue
        for by, name in choices:
            texts = [_label(method), name, *(accuracy(runs, by) for runs in cells)]
            lines.append(tuple(map(Text, texts)))
    if kind == "random":
        lines += [_given(f"{label}, published", v, grid) for label, v in grid.published.items()]
        lines += [_given("goal", grid.goal, grid)] if grid.goal else []
    header = ("method", "chosen by", *(f"bags of {size}" for size in grid.bag_sizes))
    return Table(f"{_KINDS[kind]}.", header, tuple(lines))


def _given(label: str, values: Mapping[str, float], grid: LeagueGrid) -> tuple[Text, ...]:
    """Numbers of others; most of them were chosen on the test set."""
    texts = [f"{values[str(k)]:g}" if str(k) in values else "-" for k in grid.bag_sizes]
    return tuple(map(Text, [label, "-", *texts]))


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


def _other_runs(grid: LeagueGrid, rows: Sequence[LeagueRow]) -> Table:
    """Runs of the same methods and net with settings that are not the table's."""
    cells, methods = set(grid.cells()), set(grid.methods)
    lines = [
        _one_run(row)
        for row in rows
        if (row.spec.dataset, row.spec.net) == (grid.dataset, grid.net)
        and row.spec.method in methods
        and row.spec.cell not in cells
    ]
    header = ("method", "bags of", "epochs", "rate", "options", "accuracy", "minutes", "at once")
    title = "Runs with other settings: accuracy after the last epoch on the test set."
    return Table(title, header, tuple(sorted(lines, key=lambda texts: [t.text for t in texts[:2]])))


def _one_run(row: LeagueRow) -> tuple[Text, ...]:
    spec, outcome = row.spec, row.outcome
    options = ", ".join(f"{name} {value}" for name, value in json.loads(spec.options).items())
    texts = (
        _label(spec.method),
        f"{spec.bag_size:4}",
        f"{spec.start_epochs} + {spec.epochs}",
        f"{spec.learning_rate:g}",
        options or "-",
        f"{100 * (1 - row.chosen('last')[1]):.1f}",
        f"{outcome['seconds'] / 60:.1f}",
        str(outcome.get("workers", 1)),
    )
    return tuple(map(Text, texts))


def _costs(grid: LeagueGrid, found: dict[RunSpec, list[LeagueRow]]) -> Table:
    """Minutes of a run, with how many beside it on which device."""
    lines = []
    for method in grid.methods:
        runs = [
            run for cell in grid.cells() if cell.method == method for run in found.get(cell, [])
        ]
        if not runs:
            continue
        minutes = [run.outcome["seconds"] / 60 for run in runs]
        beside = sorted({run.outcome.get("workers", 1) for run in runs})
        devices = sorted({str(run.outcome.get("device")) for run in runs})
        texts = (
            f"{np.mean(minutes):.1f}",
            ", ".join(map(str, beside)),
            ", ".join(devices),
        )
        lines.append((Text(_label(method)), Text(str(len(runs))), *map(Text, texts)))
    header = ("method", "runs", "minutes a run", "runs at once", "device")
    return Table("Cost, without a contrastive start that was trained before.", header, tuple(lines))
