"""The paper's two tables beside its numbers, made from rows alone."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from functools import partial
from io import StringIO
from pathlib import Path
from statistics import median

from unbag_paper.runs.grid import Grid
from unbag_paper.runs.rows import Row
from unbag_paper.tables.comparison import PaperRow, close_cells, finished, judged_cells, paper_rows
from unbag_paper.tables.published import net_name, reason_for
from unbag_paper.tables.rendering import FORMATS, Table, Text, render
from unbag_paper.tables.summary import CellSummary, MeanWithError, known_regrets, summarize

__all__ = [
    "error_table",
    "format_error",
    "format_estimate",
    "page",
    "reason_of",
    "to_csv",
    "write_tables",
]

Pick = Callable[[CellSummary], MeanWithError | None]


def format_error(error: float) -> str:
    """A percentage with three digits, as the paper prints them.

    Examples
    --------
    >>> format_error(10.94), format_error(9.5), format_error(0.4172)
    ('10.9', '9.50', '0.417')
    """
    return f"{error:.{1 if abs(error) >= 10 else 2 if abs(error) >= 1 else 3}f}"


def format_estimate(estimate: MeanWithError | None, *, sign: bool = False) -> str:
    """A mean and its standard error; nothing for None."""
    if estimate is None:
        return ""
    mean = ("+" if sign and estimate.mean > 0 else "") + format_error(estimate.mean)
    if estimate.standard_error != estimate.standard_error:
        return mean
    return f"{mean} ± {estimate.standard_error:.2g}"


def error_table(
    grid: Grid, cells: list[CellSummary], caption: str, pick: Pick, *, paper: bool = False
) -> Table:
    """A row for each bag size and net, a column for each rule.

    Of a row's cells with the most seeds, the least is bold; a cell of fewer seeds than others of
    the table says how many.

    Parameters
    ----------
    grid : Grid
    cells : list of CellSummary
    caption : str
    pick : function
        What to show of a cell.
    paper : bool
        Whether the paper's number follows in brackets.
    """
    found = {(c.cell.bag_size, c.cell.model, c.cell.rule.label): c for c in cells}
    labels = [rule.label for rule in grid.rules]
    seeds = [value.n_seeds for value in map(pick, cells) if value is not None]
    most = max(seeds, default=0)
    if min(seeds, default=0) < most:
        caption += (
            f" {most} seeds where a cell names no other number; bold is the least of those in a "
            "row that have the most seeds."
        )
    rows = []
    for size in grid.bag_sizes:
        for model in grid.models:
            row = [found.get((size, model, label)) for label in labels]
            if any(row):
                texts = _row_texts(row, pick, most, paper=paper)
                rows.append((Text(str(size)), Text(net_name(model)), *texts))
    return Table(caption, ("k", "net", *labels), tuple(rows))


def _row_texts(
    row: list[CellSummary | None], pick: Pick, most_seeds: int, *, paper: bool
) -> list[Text]:
    values = [None if cell is None else pick(cell) for cell in row]
    known = finished([value for value in values if value is not None])
    least = min((value.mean for value in known), default=None)
    texts = []
    for cell, value in zip(row, values, strict=True):
        text = format_estimate(value)
        if paper and cell is not None and cell.published is not None:
            text += f" ({format_error(cell.published)})"
        if value is not None and value.n_seeds < most_seeds:
            text += f", {value.n_seeds} seed{'s' * (value.n_seeds > 1)}"
        texts.append(Text(text, bold=value in known and value.mean == least))
    return texts


def _difference_table(cells: list[CellSummary]) -> Table:
    published = [cell for cell in cells if cell.published is not None]
    rows = tuple(
        (
            Text(str(c.cell.bag_size)),
            Text(net_name(c.cell.model)),
            Text(c.cell.rule.label),
            Text(format_estimate(c.best)),
            Text(str(c.n_seeds)),
            Text(format_error(c.published or 0.0)),
            Text(format_estimate(c.difference, sign=True)),
            Text(_verdict(c)),
        )
        for c in published
    )
    close = "within 15 % or 0.5 points"
    header = ("k", "net", "rule", "ours", "seeds", "paper", "difference", close)
    return Table("Difference to the paper, with its standard error.", header, rows)


def _verdict(c: CellSummary) -> str:
    return "yes" if close_cells([c]) else f"no: {reason_of(c)}"


def reason_of(c: CellSummary) -> str:
    """Why a cell is far from the paper, as far as was found out."""
    where = (c.cell.dataset, c.cell.bag_size, c.cell.model, c.cell.rule.label)
    return reason_for(*where, conditions=c.cell.spec.conditions) or "not explained yet"


def _row_winners(cells: list[CellSummary]) -> Table:
    """Best published number of each of the paper's rows beside the best of our rules."""
    header = ("k", "net", "best published", "best here", "seeds", "rule", "at or below")
    rows = tuple(map(_winner_row, paper_rows(cells)))
    return Table("Each row's best number, published and here.", header, rows)


def _winner_row(row: PaperRow) -> tuple[Text, ...]:
    cell = row.ours.cell
    return (
        Text(str(cell.bag_size)),
        Text(net_name(cell.model)),
        Text(format_error(row.published)),
        Text(format_estimate(row.ours.best)),
        Text(str(row.ours.n_seeds)),
        Text(cell.rule.label),
        Text("yes" if row.at_or_below else "no", bold=not row.at_or_below),
    )


def _regret_line(cells: list[CellSummary]) -> str:
    regrets = known_regrets(cells)
    if not regrets:
        return "No cell has seeds of both its best learning rate and the one chosen without labels."
    return (
        "Learning rate and epoch chosen without labels cost a median of "
        f"{median(regrets):.2f} points of test error over {len(regrets)} cells (largest "
        f"{max(regrets):.1f}) against choosing them on the test set, over the seeds that both "
        "choices have."
    )


def _label_free_table(grid: Grid, cells: list[CellSummary]) -> list[Table | str]:
    """What bags of test instances say about the trained nets, beside the truth."""
    measured = [(cell, cell.label_free) for cell in cells if cell.label_free is not None]
    if not measured:
        return []
    n, covered = (sum(getattr(found, name) for _, found in measured) for name in ("n", "n_covered"))
    rows = tuple(
        (
            Text(str(c.cell.bag_size)),
            Text(net_name(c.cell.model)),
            Text(c.cell.rule.label),
            Text(format_error(found.estimate)),
            Text(format_error(found.truth)),
            Text(format_error(found.width)),
            Text(f"{found.n_covered} of {found.n}"),
        )
        for c, found in measured
    )
    header = ("k", "net", "rule", "estimated", "true", "width", "intervals that cover")
    return [
        f"The error of trained nets, at all learning rates, estimated from bags of test instances "
        f"without a label: {covered} of {n} intervals of 95 % cover the true test error "
        f"({100 * covered / n:.1f} %).",
        Table(
            "Estimated and true error at the last epoch, and mean width of the intervals, averaged "
            "over a cell's nets; bags of k, but at most 100, test instances.",
            header,
            rows,
        ),
    ]


def page(grid: Grid, cells: list[CellSummary]) -> list[Table | str]:
    """Everything there is to say about a table, in order."""
    published = judged_cells(cells)
    close = close_cells(published)
    fewest = min((c.n_seeds for c in cells), default=0)
    most = max((c.n_seeds for c in cells), default=0)
    seeds = f"{most}" if fewest == most else f"{fewest} to {most}"
    table = partial(error_table, grid, cells)
    return [
        f"{len(cells)} of {sum(1 for _ in grid.cells())} cells have rows, of {seeds} seeds. "
        f"{len(close)} of {len(published)} cells that the paper has are within 15 % or half "
        "a point of it.",
        _regret_line(cells),
        table(
            "Best epoch of the mean curve, learning rate and epoch chosen on the test set as in "
            "the paper; standard error over seeds; the paper's number in brackets.",
            lambda cell: cell.best,
            paper=True,
        ),
        table("Last epoch, at the same learning rate.", lambda cell: cell.last),
        table(
            "Learning rate and epoch chosen without labels, by the pairwise debiased square risk "
            "on bags of one half of the test set; error on the other half.",
            lambda cell: cell.free,
        ),
        table(
            "The same choice without labels; error on the whole test set.",
            lambda cell: cell.free_whole,
        ),
        _row_winners(cells),
        _difference_table(cells),
        *_label_free_table(grid, cells),
    ]


_COLUMNS: dict[str, Callable[[CellSummary], object]] = {
    "dataset": lambda c: c.cell.dataset,
    "bag_size": lambda c: c.cell.bag_size,
    "model": lambda c: c.cell.model,
    "rule": lambda c: c.cell.rule.label,
    "bags_per_batch": lambda c: c.cell.spec.bags_per_batch,
    "n_seeds": lambda c: c.n_seeds,
    "learning_rate": lambda c: c.learning_rate,
    "epoch": lambda c: c.epoch,
    "best": lambda c: c.best.mean,
    "best_se": lambda c: c.best.standard_error,
    "last": lambda c: c.last.mean,
    "last_se": lambda c: c.last.standard_error,
    "published": lambda c: c.published,
    "difference": lambda c: c.difference and round(c.difference.mean, 6),
    "difference_se": lambda c: c.difference and round(c.difference.standard_error, 6),
    "free_rate": lambda c: c.free_rate,
    "free_seeds": lambda c: c.free.n_seeds,
    "free": lambda c: c.free.mean,
    "free_se": lambda c: c.free.standard_error,
    "free_whole": lambda c: c.free_whole.mean,
    "free_whole_se": lambda c: c.free_whole.standard_error,
    "regret": lambda c: c.regret,
    "blind_estimate": lambda c: c.label_free and c.label_free.estimate,
    "blind_truth": lambda c: c.label_free and c.label_free.truth,
    "blind_width": lambda c: c.label_free and c.label_free.width,
    "blind_nets": lambda c: c.label_free and c.label_free.n,
    "blind_covered": lambda c: c.label_free and c.label_free.n_covered,
}


def to_csv(cells: list[CellSummary]) -> str:
    """One line for each cell, with every number."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows([column(cell) for column in _COLUMNS.values()] for cell in cells)
    return text.getvalue()


def write_tables(grid: Grid, rows: Iterable[Row], folder: Path) -> list[Path]:
    """Write a grid's page as Markdown, LaTeX, HTML and CSV; nothing if it has no rows yet."""
    cells = summarize(grid, rows)
    if not cells:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    texts = {f: render(grid.title, page(grid, cells), format=f) for f in FORMATS}
    texts["csv"] = to_csv(cells)
    paths = [folder / f"{grid.name}.{ending}" for ending in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths
