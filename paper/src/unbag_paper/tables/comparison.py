"""Our cells beside the published numbers.

If several cells match one published number, the one with the most seeds counts. So an unfinished
run does not replace a finished one, and two lucky seeds do not win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from unbag_paper.tables.published import best_published, is_close, name_in_paper
from unbag_paper.tables.summary import CellSummary, MeanWithError

__all__ = ["PaperRow", "close_cells", "finished", "judged_cells", "paper_rows"]

Seeded = TypeVar("Seeded", CellSummary, MeanWithError)


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's tables: its best number, and the cell of ours with the least error."""

    published: float
    ours: CellSummary

    @property
    def at_or_below(self) -> bool:
        """Whether our number is as good as the paper's."""
        return self.ours.best.mean <= self.published


def judged_cells(cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Cells that the paper has; of several that stand for one of its, the last."""
    alike: dict[tuple[str, int, str, str], list[CellSummary]] = {}
    for cell in cells:
        if cell.published is not None:
            alike.setdefault((*_row_of(cell), cell.cell.rule.label), []).append(cell)
    return [finished(group)[-1] for group in alike.values()]


def close_cells(cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Those within 15 % or half a point of the paper."""
    return [c for c in cells if c.published is not None and is_close(c.best.mean, c.published)]


def paper_rows(cells: Sequence[CellSummary]) -> list[PaperRow]:
    """Rows of the paper that have cells here, by data set, bag size and net."""
    alike: dict[tuple[str, int, str], list[CellSummary]] = {}
    for cell in cells:
        alike.setdefault(_row_of(cell), []).append(cell)
    datasets = list(dict.fromkeys(dataset for dataset, _, _ in alike))
    found = []
    for row in sorted(alike, key=lambda row: (datasets.index(row[0]), row[1])):
        published = best_published(*row)
        if published is not None:
            ours = min(finished(alike[row]), key=lambda cell: cell.best.mean)
            found.append(PaperRow(published, ours))
    return found


def finished(found: Sequence[Seeded]) -> list[Seeded]:
    """Those with the most seeds."""
    most = max((one.n_seeds for one in found), default=0)
    return [one for one in found if one.n_seeds == most]


def _row_of(cell: CellSummary) -> tuple[str, int, str]:
    return cell.cell.dataset, cell.cell.bag_size, name_in_paper(cell.cell.model)
