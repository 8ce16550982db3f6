"""Write every table and figure that has rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unbag_paper.runs.grid import Grid
from unbag_paper.runs.rows import Row
from unbag_paper.tables.error_tables import error_table, write_tables
from unbag_paper.tables.figures import FIGURES, write_figures
from unbag_paper.tables.one_recipe import write_one_recipe
from unbag_paper.tables.overview import write_overview
from unbag_paper.tables.rendering import render
from unbag_paper.tables.summary import summarize

__all__ = ["short_table", "write_pages"]


def write_pages(grids: Sequence[Grid], rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write the pages of these grids, and one of all tables if there are several; never trains.

    Parameters
    ----------
    grids : sequence of Grid
    rows : sequence of Row
    folder : path

    Returns
    -------
    list of Path
        Files that were written.
    """
    names = dict.fromkeys(grid.name for grid in grids)
    paths: list[Path] = []
    for name in names:
        alike = [grid for grid in grids if grid.name == name]
        if name in FIGURES:
            paths += write_figures(name, alike, rows, folder)
        else:
            paths += [path for grid in alike for path in write_tables(grid, rows, folder)]
    tables = [grid for grid in grids if grid.name not in FIGURES]
    if len({grid.name for grid in tables}) > 1:
        paths += write_overview(tables, rows, folder)
        paths += write_one_recipe(tables, rows, folder)
    return paths


def short_table(grid: Grid, rows: Sequence[Row]) -> str:
    """The main table of a grid as Markdown, for the end of a run."""
    caption = "Test error in percent, standard error over seeds, the paper's number in brackets."
    table = error_table(grid, summarize(grid, rows), caption, lambda cell: cell.best, paper=True)
    return render(grid.title, [table], format="md")
