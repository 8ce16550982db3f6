"""Style and saving of the figures of claims."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

__all__ = ["add_line", "new_figure", "save_figure"]

COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8a5a9e", "#c98c1e", "#444444", "#2a9d8f")


def new_figure(n_panels: int = 1, *, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """A row of panels, without touching any global state."""
    figure = Figure(figsize=(4.4 * n_panels, height), layout="constrained")
    panels = figure.subplots(1, n_panels, squeeze=False)[0]
    for axes in panels:
        axes.set_prop_cycle(color=COLOURS)
        axes.grid(alpha=0.25, linewidth=0.6)
    return figure, list(panels)


def add_line(axes: Axes, x, y, errors=None, *, label: str, **style) -> None:  # type: ignore[no-untyped-def]
    """Points with two-standard-error bars, joined."""
    bars = None if errors is None else [2 * error for error in errors]
    axes.errorbar(x, y, yerr=bars, label=label, marker="o", markersize=3, linewidth=1.2, **style)


def _thin_labels(axes: Axes) -> None:
    """Label only the decades of a logarithmic axis that spans one: minor labels run together."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        if axis.get_scale() == "log" and high >= 10 * low:
            axis.set_minor_formatter(NullFormatter())


def save_figure(figure: Figure, stem: Path) -> None:
    """Write PNG and SVG; the SVG is the same at every run."""
    for axes in figure.axes:
        _thin_labels(axes)
    with mpl.rc_context({"svg.hashsalt": "unbag", "svg.fonttype": "none"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"), dpi=110)
