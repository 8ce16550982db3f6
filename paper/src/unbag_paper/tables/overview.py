"""One page about all tables: which published numbers are met, and which are improved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unbag_paper.runs.grid import Grid
from unbag_paper.runs.rows import Row
from unbag_paper.tables.comparison import PaperRow, close_cells, judged_cells, paper_rows
from unbag_paper.tables.error_tables import format_error, format_estimate, reason_of
from unbag_paper.tables.published import net_name
from unbag_paper.tables.rendering import FORMATS, Table, Text, render
from unbag_paper.tables.summary import CellSummary, summarize

__all__ = ["overview", "write_overview"]

TITLE, CONDITIONS = "Both tables beside the paper", "bags and images"
_DATASETS = {"mnist": "MNIST", "cifar": "CIFAR-10"}
_CONDITIONS = {"ours": "ours", "exact": "the paper's"}


def overview(cells: Sequence[CellSummary]) -> list[Table | str]:
    """What the cells of all tables say together.

    Parameters
    ----------
    cells : sequence of CellSummary
        Of several that stand for one of the paper's, the last with the most seeds is judged; so
        those under the paper's own conditions come after those under ours.
    """
    judged, rows = judged_cells(cells), paper_rows(cells)
    close = close_cells(judged)
    missed = [cell for cell in judged if cell not in close]
    return [
        f"{len(close)} of {len(judged)} published numbers are met within 15 % or half a point, "
        "each under the paper's own conditions if it was run under them and else under ours. In "
        f"{sum(row.at_or_below for row in rows)} of {len(rows)} rows the best number here is at or "
        "below the best published one, by the better of both conditions. Of several "
        "that were run, those with the most seeds count.",
        Table(
            "Each row's best test error in percent, learning rate and epoch chosen on the test set "
            "as in the paper; standard error over seeds.",
            ("data", "k", "net", "paper", "here", "seeds", "rule", CONDITIONS, "at or below"),
            tuple(map(_row, rows)),
        ),
        Table(
            "Numbers that are further off, and what was found.",
            ("data", "k", "net", "rule", "paper", "here", CONDITIONS, "why"),
            tuple(map(_missed, missed)),
        ),
    ]


def _row(row: PaperRow) -> tuple[Text, ...]:
    data, size, net, rule, here, conditions = _texts(row.ours)
    paper, seeds = Text(format_error(row.published)), Text(str(row.ours.n_seeds))
    verdict = Text("yes" if row.at_or_below else "no", bold=not row.at_or_below)
    return data, size, net, paper, here, seeds, rule, conditions, verdict


def _missed(c: CellSummary) -> tuple[Text, ...]:
    data, size, net, rule, here, conditions = _texts(c)
    paper = Text(format_error(c.published or 0.0))
    return data, size, net, rule, paper, here, conditions, Text(reason_of(c))


def _texts(c: CellSummary) -> tuple[Text, Text, Text, Text, Text, Text]:
    """Data set, bag size, net, rule, error and conditions of a cell."""
    return (
        Text(_DATASETS[c.cell.dataset]),
        Text(str(c.cell.bag_size)),
        Text(net_name(c.cell.model)),
        Text(c.cell.rule.label),
        Text(format_estimate(c.best)),
        Text(_CONDITIONS[c.cell.spec.conditions]),
    )


def write_overview(grids: Sequence[Grid], rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write the page of all tables as Markdown, LaTeX and HTML; nothing if there are no rows."""
    ordered = sorted(grids, key=lambda grid: grid.conditions == "exact")
    cells = [cell for grid in ordered for cell in summarize(grid, rows)]
    if not cells:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"paper.{ending}" for ending in FORMATS]
    for path, ending in zip(paths, FORMATS, strict=True):
        path.write_text(render(TITLE, overview(cells), format=ending), encoding="utf-8")
    return paths
