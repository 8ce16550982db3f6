"""The paper's three figures, drawn from rows alone, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from unbag_paper.runs.grid import Cell, Grid
from unbag_paper.runs.rows import Row
from unbag_paper.runs.selection import CellRows, best_by_test, index_rows
from unbag_paper.tables.published import net_name

__all__ = ["FIGURES", "draw_figure", "write_figures"]

# Okabe and Ito's colours, which remain distinct to the colour-blind; a rule keeps its own.
_COLOURS = {
    "EZ.Log": "#E69F00",
    "EZ.Sq": "#D55E00",
    "PM.Log": "#56B4E9",
    "PM.Sq": "#0072B2",
    "DSQ": "#CC79A7",
    "pairwise": "#009E73",
    "count": "#444444",
    "DSQ, beta 0": "#E69F00",
    "DSQ, beta 0.9": "#D55E00",
    "DSQ, beta 0.99": "#CC79A7",
}
_NAMES = {"mnist": "MNIST, odd against even", "cifar": "CIFAR-10, animal against machine"}
_BAGS = {"ours": "bags drawn for each seed", "exact": "the paper's bags"}

Found = Sequence[tuple[Cell, CellRows]]


def _found(grids: Iterable[Grid], rows: Iterable[Row]) -> list[tuple[Cell, CellRows]]:
    index = index_rows(rows)
    cells = [cell for grid in grids for cell in grid.cells()]
    return [(cell, index[cell.spec.cell]) for cell in cells if cell.spec.cell in index]


def _panels(n: int, title: str, *, width: float = 5.0) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width * n, 4.2), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(1, n, squeeze=False)[0]
    return figure, list(axes)


def _by_panel(found: Found) -> list[Found]:
    """Cells of one data set, net and kind of bags."""
    panels: dict[tuple[str, str, str], list[tuple[Cell, CellRows]]] = {}
    for cell, rows in found:
        key = cell.dataset, cell.model, cell.spec.conditions
        panels.setdefault(key, []).append((cell, rows))
    return list(panels.values())


def training_curves(title: str, found: Found) -> Figure:
    """Figure 1: mean test error of each rule at its best rate, and one deviation around it."""
    parts = _by_panel(found)
    figure, axes = _panels(len(parts), title)
    for ax, pairs in zip(axes, parts, strict=True):
        for cell, rows in pairs:
            curves = 100 * rows.curves(best_by_test(rows)[0], "test_error")
            _draw_band(ax, curves, cell.rule.label)
        _label_errors(ax, pairs[0][0])
    return figure


def full_batch_curves(title: str, found: Found) -> Figure:
    """Figure 3: mean test error of descent on the full batch; the start is what differs."""
    parts = _by_panel(found)
    figure, axes = _panels(len(parts), title)
    for ax, pairs in zip(axes, parts, strict=True):
        for cell, rows in pairs:
            curve = 100 * rows.curves(rows.rates[0], "test_error").mean(axis=0)
            epochs = np.arange(1, len(curve) + 1)
            ax.plot(epochs, curve, color=_COLOURS.get(cell.rule.label), label=cell.rule.label)
        ax.set_xscale("log")
        _label_errors(ax, pairs[0][0])
    return figure


def loss_estimates(title: str, found: Found) -> Figure:
    """Figure 2: estimated and true square loss over training, and bag by bag at epoch 10."""
    figure, axes = _panels(1 + len(found), title, width=4.2)
    for cell, rows in found:
        label = cell.rule.label
        arrays = _only_row(rows).arrays
        epochs = np.arange(1, len(arrays["true_square"]) + 1)
        colour = _COLOURS.get(label)
        axes[0].plot(epochs, arrays[f"estimate {label}"], color=colour, label=f"{label}, estimated")
        axes[0].plot(epochs, arrays["true_square"], color=colour, ls=":", label=f"{label}, true")
    axes[0].set(xlabel="epoch", ylabel="square loss on test bags")
    axes[0].legend(fontsize="small")
    for ax, (cell, rows) in zip(axes[1:], found, strict=True):
        _draw_histograms(ax, _only_row(rows).arrays, cell.rule.label)
    return figure


def _only_row(rows: CellRows) -> Row:
    return next(iter(rows.rows.values()))


def _draw_histograms(ax: Axes, arrays: Mapping[str, Any], label: str) -> None:
    truth, estimate = arrays["bag truth"], arrays[f"bag {label}"]
    both = np.concatenate([truth, estimate])
    edges = np.linspace(both.min(), both.max(), 60).tolist()
    ax.hist(truth, edges, color="#999999", label="true")
    ax.hist(estimate, edges, color=_COLOURS.get(label), alpha=0.7, label="estimated")
    ax.set(xlabel=f"square loss of a bag, {label}", ylabel="bags", yscale="log")
    ax.legend(fontsize="small")


def _draw_band(ax: Axes, curves: Any, label: str) -> None:
    epochs, mean = np.arange(1, curves.shape[1] + 1), curves.mean(axis=0)
    spread = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.zeros_like(mean)
    ax.plot(epochs, mean, color=_COLOURS.get(label), label=label)
    low = np.maximum(mean - spread, mean / 10)  # the axis is logarithmic
    ax.fill_between(epochs, low, mean + spread, color=_COLOURS.get(label), alpha=0.2, lw=0)


def _label_errors(ax: Axes, cell: Cell) -> None:
    name = _NAMES.get(cell.dataset, cell.dataset)
    title = f"{name}\n{net_name(cell.model)}; {_BAGS[cell.spec.conditions]}"
    ax.set(xlabel="epoch", ylabel="test error in percent", title=title)
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())
    ax.legend(fontsize="small")


FIGURES: dict[str, Callable[[str, Found], Figure]] = {
    "figure1": training_curves,
    "figure2": loss_estimates,
    "figure3": full_batch_curves,
}


def draw_figure(name: str, grids: Sequence[Grid], rows: Iterable[Row]) -> Figure | None:
    """Draw a figure, or None if none of its trials are there.

    Parameters
    ----------
    name : str
        A key of `FIGURES`.
    grids : sequence of Grid
        What `load_grids` gave for it.
    rows : iterable of Row
    """
    found = _found(grids, rows)
    return FIGURES[name](grids[0].title, found) if found else None


def write_figures(
    name: str, grids: Sequence[Grid], rows: Iterable[Row], folder: Path
) -> list[Path]:
    """Write a figure as PNG and SVG; the same rows give the same SVG, byte for byte."""
    figure = draw_figure(name, grids, rows)
    if figure is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in ("png", "svg")]
    with matplotlib.rc_context({"svg.hashsalt": name, "savefig.dpi": 150}):
        figure.savefig(paths[0])
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
