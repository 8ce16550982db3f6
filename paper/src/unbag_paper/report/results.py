"""The page about a folder of results: tables beside the paper's, figures, where rows come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from unbag.report.page import render_template
from unbag_paper.report.embedded_images import embedded_figure
from unbag_paper.report.theory import theory_section
from unbag_paper.runs.grid import GRIDS, Grid, load_grids
from unbag_paper.runs.rows import STORE_NAME, Row, read_rows
from unbag_paper.tables.comparison import close_cells, judged_cells, paper_rows
from unbag_paper.tables.error_tables import page
from unbag_paper.tables.figures import FIGURES, draw_figure
from unbag_paper.tables.rendering import FORMATS, Table
from unbag_paper.tables.summary import CellSummary, known_regrets, summarize

__all__ = ["Fidelity", "fidelity", "render_results"]

COMMANDS = {
    "mnist": "unbag-paper mnist --device cuda --resume",
    "cifar": "unbag-paper cifar --device cuda --resume",
    "mnist_exact": "unbag-paper mnist --exact --device cuda --resume",
    "cifar_exact": "unbag-paper cifar --exact --device cuda --resume",
    "figures": "unbag-paper figures --device cuda --resume",
    "theory": "unbag-paper theory",
}


@dataclass(frozen=True)
class Fidelity:
    """How a table compares with the paper's.

    Attributes
    ----------
    cells, of_cells : int
        Cells that have rows, and cells declared.
    close, published : int
        Cells within 15 % or half a point of the paper's number, of those that have one.
    at_or_below, table_rows : int
        Rows of the table whose best number here is at or below the best published one.
    regret : float or None
        Median over cells of what choosing without labels costs, in points of test error.
    """

    cells: int
    of_cells: int
    close: int
    published: int
    at_or_below: int
    table_rows: int
    regret: float | None


def render_results(folder: Path | str, *, grids: Sequence[Grid] | None = None) -> str:
    """Make one page of a folder of results; trains nothing and changes nothing there.

    Parameters
    ----------
    folder : path
        Holds a folder ``rows``, as `unbag-paper` makes it, and perhaps ``theory/claims.json``
        with its figures; or such a folder of rows itself.
    grids : sequence of Grid, optional
        Tables and figures to show; all declared ones by default.

    Returns
    -------
    str
        HTML that needs no network, no script and no other file.
    """
    folder = Path(folder)
    store = folder if folder.name == STORE_NAME else folder / STORE_NAME
    rows = read_rows(store)
    if grids is None:
        grids = [grid for name in GRIDS for grid in load_grids(name)]
    tables = [_table_section(grid, cells) for grid, cells in _with_rows(grids, rows)]
    return render_template(
        "results.html.jinja",
        packages=("unbag_paper.report", "unbag.report"),
        n_rows=len(rows),
        tables=tables,
        figures=_figures(grids, rows),
        theory=theory_section(store.parent / "theory"),
        sources=_sources(rows),
        commands=COMMANDS,
        source=str(folder),
    )


def fidelity(grid: Grid, cells: Sequence[CellSummary]) -> Fidelity:
    """Compare the cells of a table with the paper's."""
    published, table_rows = judged_cells(cells), paper_rows(cells)
    regrets = known_regrets(cells)
    return Fidelity(
        cells=len(cells),
        of_cells=sum(1 for _ in grid.cells()),
        close=len(close_cells(published)),
        published=len(published),
        at_or_below=sum(row.at_or_below for row in table_rows),
        table_rows=len(table_rows),
        regret=median(regrets) if regrets else None,
    )


def _with_rows(grids: Sequence[Grid], rows: Sequence[Row]) -> list[tuple[Grid, list[CellSummary]]]:
    summaries = [(grid, summarize(grid, rows)) for grid in grids if grid.name not in FIGURES]
    return [(grid, cells) for grid, cells in summaries if cells]


def _table_section(grid: Grid, cells: list[CellSummary]) -> dict[str, Any]:
    parts = page(grid, cells)
    tables = [part for part in parts if isinstance(part, Table)]
    to_html = FORMATS["html"][2]
    return {
        "name": grid.name,
        "title": grid.title,
        "words": [part for part in parts if isinstance(part, str)],
        "fidelity": fidelity(grid, cells),
        "tables": [{"caption": table.caption, "html": to_html(table)} for table in tables],
    }


def _figures(grids: Sequence[Grid], rows: Sequence[Row]) -> list[dict[str, str]]:
    found = []
    for name in FIGURES:
        alike = [grid for grid in grids if grid.name == name]
        figure = draw_figure(name, alike, rows) if alike else None
        if figure is not None:
            found.append({"title": alike[0].title, "image": embedded_figure(figure, name)})
    return found


def _sources(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Where rows come from: one line for each commit, device, way of computing and versions."""
    alike: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        alike[_source(row)].append(row)
    return [
        {
            "commit": commit,
            "device": device,
            "computed": computed,
            "versions": versions,
            "rows": len(group),
            "hours": sum(row.outcome.get("seconds", 0.0) for row in group) / 3600,
            "seeds": _span(row.spec.seed for row in group),
        }
        for (commit, device, computed, versions), group in sorted(alike.items())
    ]


def _source(row: Row) -> tuple[str, ...]:
    outcome = row.outcome
    settings, versions = outcome.get("settings", {}), outcome.get("versions", {})
    return (
        str(outcome.get("commit", "unknown")),
        str(outcome.get("device", "unknown")),
        ", ".join(f"{name} {value}" for name, value in sorted(settings.items())),
        ", ".join(f"{name} {value}" for name, value in sorted(versions.items())),
    )


def _span(seeds: Any) -> str:
    values = sorted(set(seeds))
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
