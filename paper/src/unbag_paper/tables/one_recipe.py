"""The paper's thirty rows by one recipe, in which nothing is chosen on test data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unbag_paper.runs.grid import Grid
from unbag_paper.runs.rows import Row
from unbag_paper.tables.error_tables import format_error, format_estimate
from unbag_paper.tables.published import best_published, name_in_paper, net_name
from unbag_paper.tables.rendering import FORMATS, Table, Text, render
from unbag_paper.tables.summary import CellSummary, summarize

__all__ = ["RECIPE", "RecipeRow", "one_recipe", "recipe_rows", "write_one_recipe"]

RECIPE = {
    "linear": "distilled",
    "mlp100": "distilled",
    "mlp1000": "distilled",
    "cnn_small": "pairwise",
    "cnn_large": "pairwise",
}
"""Which column trains a net: convolutional nets learn from bags, and the small one teaches."""

RecipeRow = tuple[str, int, str, CellSummary | None]
"""Data set, bag size and net of a row, and its cell; None if it was not run."""

_DATASETS = {"mnist": "MNIST", "cifar": "CIFAR-10"}
_CONDITIONS = {"ours": "ours", "exact": "the paper's"}
_BAG_SIZES = (10, 100, 1000)


def recipe_rows(cells: Sequence[CellSummary]) -> list[RecipeRow]:
    """The cell of each of the paper's rows.

    Of several, such as nets that differ in padding, or both conditions, the one with the most
    seeds counts, and then the first: no error is looked at.
    """
    found: list[RecipeRow] = []
    for dataset in _DATASETS:
        for size in _BAG_SIZES:
            for net, label in RECIPE.items():
                alike = [cell for cell in cells if _is_of(cell, dataset, size, net, label)]
                most = max(alike, key=lambda cell: cell.free_whole.n_seeds, default=None)
                found.append((dataset, size, net, most))
    return found


def _is_of(cell: CellSummary, dataset: str, size: int, net: str, label: str) -> bool:
    own = cell.cell
    place = own.dataset, own.bag_size, name_in_paper(own.model), own.rule.label
    return place == (dataset, size, net, label)


def one_recipe(cells: Sequence[CellSummary]) -> list[Table | str]:
    """What the recipe gives beside the paper's best rule of each row."""
    rows = recipe_rows(cells)
    run = [row for row in rows if row[3] is not None]
    below = sum(_at_or_below(row) for row in run)
    left = f"; {len(rows) - len(run)} were not run" if len(run) < len(rows) else ""
    return [
        f"**One recipe: {below} of {len(rows)}** rows are at or below the best of the paper's five "
        f"rules{left}. Convolutional nets learn from bags by the "
        "pairwise debiased square loss. Dense nets learn from the probabilities of the small CNN, "
        "which learned from the same bags in the same way at one fixed learning rate. Rate and "
        "epoch are chosen by held-out bags alone. The recipe itself was written down after the "
        "other tables had been seen.",
        Table(
            "Test error in percent, mean over seeds with its standard error. The paper's number is "
            "that of its best rule, rate and epoch on the test set.",
            ("data", "k", "net", "paper", "here", "seeds", "column", "bags", "at or below"),
            tuple(map(_line, rows)),
        ),
    ]


def _at_or_below(row: RecipeRow) -> bool:
    dataset, size, net, cell = row
    published = best_published(dataset, size, net)
    return cell is not None and published is not None and cell.free_whole.mean <= published


def _line(row: RecipeRow) -> tuple[Text, ...]:
    dataset, size, net, cell = row
    shown = net if cell is None else cell.cell.model
    paper = format_error(best_published(dataset, size, net) or 0.0)
    first = [_DATASETS[dataset], str(size), net_name(shown), paper]
    if cell is None:
        return tuple(map(Text, [*first, "not run", "0", RECIPE[net], "-", "-"]))
    here, seeds = format_estimate(cell.free_whole), str(cell.free_whole.n_seeds)
    conditions = _CONDITIONS[cell.cell.spec.conditions]
    verdict = Text("yes" if _at_or_below(row) else "no", bold=not _at_or_below(row))
    return (*map(Text, [*first, here, seeds, RECIPE[net], conditions]), verdict)


def write_one_recipe(grids: Sequence[Grid], rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write the page as Markdown, LaTeX and HTML; nothing if there are no rows."""
    cells = [cell for grid in grids for cell in summarize(grid, rows)]
    if not cells:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"one_recipe.{ending}" for ending in FORMATS]
    for path, ending in zip(paths, FORMATS, strict=True):
        page = render("The paper's rows by one recipe", one_recipe(cells), format=ending)
        path.write_text(page, encoding="utf-8")
    return paths
