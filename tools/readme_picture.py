"""The picture of the README: error estimated from bags alone against the true error.

    python tools/readme_picture.py        write docs/images/error_from_bags.png

A dot is a cell of the paper's tables: the mean over its trained networks. All numbers come from
paper/results/tables/*.csv.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLES = ("mnist", "cifar", "mnist_exact", "cifar_exact")
PICTURE = ROOT / "docs" / "images" / "error_from_bags.png"
# Okabe and Ito's colours remain distinct for colour-blind readers.
COLOURS = {10: "#0072B2", 100: "#E69F00", 1000: "#009E73"}


@dataclass(frozen=True)
class Cell:
    """Networks of one cell, their mean errors in percent, and how many intervals held."""

    bag_size: int
    estimate: float
    truth: float
    n_nets: int
    n_covered: int


def read_cells() -> list[Cell]:
    """Every cell whose networks were evaluated from bags."""
    cells = []
    for table in TABLES:
        path = ROOT / "paper" / "results" / "tables" / f"{table}.csv"
        with path.open(encoding="utf-8") as file:
            cells += [_cell(row) for row in csv.DictReader(file) if row["blind_estimate"]]
    return cells


def _cell(row: dict[str, str]) -> Cell:
    return Cell(
        bag_size=int(row["bag_size"]),
        estimate=float(row["blind_estimate"]),
        truth=float(row["blind_truth"]),
        n_nets=int(row["blind_nets"]),
        n_covered=int(row["blind_covered"]),
    )


def draw(cells: list[Cell], path: Path) -> None:
    """Draw one dot per cell on logarithmic axes."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    axes.plot([0.4, 70], [0.4, 70], color="black", linewidth=0.8)
    for size, colour in COLOURS.items():
        shown = [cell for cell in cells if cell.bag_size == size]
        x, y = [c.truth for c in shown], [c.estimate for c in shown]
        axes.scatter(x, y, s=14, color=colour, alpha=0.6, linewidths=0, label=f"bags of {size}")
    axes.set(xscale="log", yscale="log", xlim=(0.4, 70), ylim=(0.4, 70))
    ticks = [0.5, 1, 2, 5, 10, 20, 50]
    axes.set_xticks(ticks, [f"{t:g} %" for t in ticks])
    axes.set_yticks(ticks, [f"{t:g} %" for t in ticks])
    axes.minorticks_off()
    axes.set(xlabel="true error, from test labels", ylabel="error estimated without labels")
    axes.legend(title="trained on", frameon=False)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Write the picture and print the numbers of its caption."""
    cells = read_cells()
    draw(cells, PICTURE)
    nets, covered = sum(c.n_nets for c in cells), sum(c.n_covered for c in cells)
    print(f"{len(cells)} cells, {nets} networks, {covered} intervals held the truth")


if __name__ == "__main__":
    main()
