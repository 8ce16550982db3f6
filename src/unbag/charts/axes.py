"""Draw a chart on axes of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unbag.charts.chart import Chart, Series

__all__ = ["draw"]


def draw(chart: Chart, ax: Any = None) -> Any:
    """Draw on these axes, or on those of a new figure, and return them."""
    if ax is None:
        from matplotlib.figure import Figure

        height = max(4.0, 1.5 + 0.3 * len(chart.names))
        ax = Figure(figsize=(6, height), layout="constrained").subplots()
    for number, series in enumerate(chart.series):
        _draw_series(ax, series, f"C{number}")
    if chart.unit:
        ax.plot([0, 1], [0, 1], ":", color="0.6")
    if chart.names:
        ax.set_yticks(range(len(chart.names)), chart.names)
        ax.set_ylim(len(chart.names) - 0.5, -0.5)
    if chart.log:
        ax.set(xscale="log", yscale="log")
    ax.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
    if any(series.name for series in chart.series):
        ax.legend(fontsize="small")
    return ax


def _draw_series(ax: Any, series: Series, color: str) -> None:
    if series.kind == "bars":
        widths = [b - a for a, b in zip(series.x[:-1], series.x[1:], strict=True)]
        ax.bar(series.x[:-1], series.y, widths, align="edge", color=color, label=series.name)
        return
    x, y, low, high = zip(*series.rows(), strict=True) if series.rows() else [()] * 4
    label = series.name or None
    if series.kind == "line":
        ax.plot(x, y, color=color, label=label)
        if len(series.low):
            ax.fill_between(x, low, high, alpha=0.2, color=color, linewidth=0)
    elif series.kind == "intervals":
        ax.hlines(y, low, high, color=color, lw=5, alpha=0.35)
        ax.plot(x, y, "|", color=color, ms=10, mew=2, label=label)
    else:
        if len(series.low):
            ax.vlines(x, low, high, color=color, lw=1)
        ax.plot(x, y, "o", color=color, ms=4, label=label)
