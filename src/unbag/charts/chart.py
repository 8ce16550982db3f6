"""`Chart`: series, labels and axes, independent of how they are drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unbag.extras import import_extra

Kind = Literal["line", "points", "bars", "intervals"]
Ends = tuple[float, float]
Curves = Mapping[str, Mapping[str, Any]]


def _is_number(*values: float | None) -> bool:
    return all(value is not None and math.isfinite(value) for value in values)


@dataclass(frozen=True)
class Series:
    """Values drawn in one colour; those that are None or not finite are left out.

    `low` and `high` are the ends of the interval of `y` (for "intervals" of `x`): a band around a
    line, a bar on a point. For "bars", `x` holds the edges.
    """

    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    name: str = ""
    kind: Kind = "line"

    def rows(self) -> list[tuple[float, float, float, float]]:
        """Points with intervals as (x, y, low, high); without an interval its width is zero."""
        centre = self.x if self.kind == "intervals" else self.y
        low, high = (list(end) if len(end) else list(centre) for end in (self.low, self.high))
        return [
            (float(x), float(y), a if _is_number(a) else c, b if _is_number(b) else c)
            for x, y, a, b, c in zip(self.x, self.y, low, high, centre, strict=True)
            if _is_number(x, y)
        ]


@dataclass(frozen=True)
class Chart:
    """A chart that displays itself in notebooks and can be saved.

    `names` label the rows of "intervals" at y = 0, 1, 2 and so on, from the top. With `unit` both
    axes go from 0 to 1 and the diagonal is drawn, and with `whole` the ticks of the x axis are
    integers.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    names: Sequence[str] = ()
    unit: bool = False
    whole: bool = False

    def svg(self) -> str:
        """SVG text; a page may colour its parts by their classes."""
        from unbag.charts.svg import render

        return render(self)

    def _repr_html_(self) -> str:
        return f'<div style="max-width: 34em">{self.svg()}</div>'

    def save(self, path: str | Path) -> Path:
        """Save as SVG, or as PNG, PDF or JPG by matplotlib (``unbag[plot]``)."""
        path = Path(path)
        if path.suffix.lower() == ".svg":
            path.write_text(self.svg(), encoding="utf-8")
        else:
            self.draw().figure.savefig(path, dpi=150)
        return path

    def draw(self, ax: Any = None) -> Any:
        """Draw with matplotlib on these axes, or on new ones, and return them."""
        import_extra("matplotlib", extra="plot", purpose="This picture")
        if ax is None:
            from matplotlib.figure import Figure

            height = max(4.0, 1.5 + 0.3 * len(self.names))
            ax = Figure(figsize=(6, height), layout="constrained").subplots()
        for number, series in enumerate(self.series):
            _draw_series(ax, series, f"C{number}")
        if self.unit:
            ax.plot([0, 1], [0, 1], ":", color="0.6")
        if self.names:
            ax.set_yticks(range(len(self.names)), self.names)
            ax.set_ylim(len(self.names) - 0.5, -0.5)
        ax.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        if any(series.name for series in self.series):
            ax.legend(fontsize="small")
        return ax

    def ends(self) -> tuple[Ends, Ends]:
        """Ranges of the axes: the unit square, or the range of all values."""
        if self.unit:
            return (0.0, 1.0), (0.0, 1.0)
        if self.names:
            return self._span_of("x", zero=True), (len(self.names) - 0.5, -0.5)
        return self._span_of("x", zero=False), self._span_of("y", zero=True)

    def _span_of(self, axis: Literal["x", "y"], *, zero: bool) -> Ends:
        values = [float(v) for s in self.series for v in getattr(s, axis) if _is_number(v)]
        across = [s for s in self.series if s.kind == "intervals"] if axis == "x" else []
        values += [end for s in across for _, _, *ends in s.rows() for end in ends]
        low, high = min(values, default=0.0), max(values, default=1.0)
        low = min(low, 0.0) if zero else low
        return (low, high) if low != high else (low - 0.5, high + 0.5)


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


def roc_chart(curves: Curves) -> Chart:
    """ROC curves by name, each with `x`, `y`, `low` and `high`; the band is pointwise."""
    labels = "false positive rate", "true positive rate"
    return Chart("ROC from bags", *labels, _series(curves, "line"), unit=True)


def calibration_chart(curves: Curves) -> Chart:
    """Share of positives against the mean score of each bin, with intervals."""
    labels = "mean score", "share of positives"
    return Chart("Calibration from bags", *labels, _series(curves, "points"), unit=True)


def _series(curves: Curves, kind: Kind) -> list[Series]:
    several = len(curves) > 1
    return [
        Series(c["x"], c["y"], c["low"], c["high"], name if several else "", kind)
        for name, c in curves.items()
    ]
