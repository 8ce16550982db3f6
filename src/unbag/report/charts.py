"""Small charts as SVG text; colours are the page's, so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

__all__ = ["Line", "bar_chart", "interval_chart", "line_chart"]

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 44


@dataclass(frozen=True)
class Line:
    """One curve, with a band around it or bars on its points if `low` and `high` are given."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    points: bool = False


class _Frame:
    """Axes that map data to the picture."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = _widened(x), _widened(y)

    def px(self, value: float) -> float:
        value = min(max(value, self.x[0]), self.x[1])
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def py(self, value: float) -> float:
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    def inside(self, value: float) -> float:
        return min(max(value, self.y[0]), self.y[1])

    def path(self, x: Sequence[float], y: Sequence[float]) -> str:
        pairs = (f"{self.px(a)},{self.py(b)}" for a, b in zip(x, y, strict=True))
        return "M" + " L".join(pairs)

    def axes(self, x_label: str, y_label: str, *, whole: bool = False) -> str:
        parts = []
        for tick in ticks(*self.y):
            height = self.py(tick)
            parts.append(f'<path class="grid" d="M{LEFT},{height} H{WIDTH - RIGHT}"/>')
            parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{height + 4}">{tick:g}</text>')
        for tick in ticks(*self.x, least=1.0 if whole else 0.0):
            place = f'x="{self.px(tick)}" y="{HEIGHT - BOTTOM + 16}"'
            parts.append(f'<text class="tick mid" {place}>{tick:g}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'<text class="label mid" x="{middle}" y="{HEIGHT - 8}">{escape(x_label)}</text>'
        )
        upright = f'transform="translate(12,{(HEIGHT - BOTTOM + TOP) / 2}) rotate(-90)"'
        parts.append(f'<text class="label mid" {upright}>{escape(y_label)}</text>')
        return "".join(parts)


def bar_chart(
    counts: Sequence[float],
    edges: Sequence[float],
    *,
    x_label: str,
    y_label: str,
    title: str,
    whole: bool = False,
) -> str:
    """Histogram, of whole numbers or of any.

    Examples
    --------
    >>> bar_chart([1, 2], [0, 1, 2], x_label="x", y_label="n", title="t").count("<rect")
    2
    """
    frame = _Frame((edges[0], edges[-1]), (0, max(counts)))
    bars = []
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        left, width = frame.px(low) + 0.5, max(frame.px(high) - frame.px(low) - 1, 0.5)
        top = frame.py(count)
        height = round(frame.py(0) - top, 1)
        bars.append(
            f'<rect class="bar" x="{left}" y="{top}" width="{width:.1f}" height="{height}"/>'
        )
    return _svg(frame.axes(x_label, y_label, whole=whole) + "".join(bars), title)


def line_chart(
    lines: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    title: str,
    diagonal: bool = False,
    unit: bool = False,
) -> str:
    """Curves in one frame; `unit` fixes both axes to [0, 1].

    Examples
    --------
    >>> chart = line_chart([Line("a", [0, 1], [0, 2])], x_label="x", y_label="y", title="t")
    >>> chart.startswith("<svg")
    True
    """
    frame = _Frame((0, 1), (0, 1)) if unit else _Frame(*_ranges(lines))
    parts = [frame.axes(x_label, y_label)]
    if diagonal:
        parts.append(f'<path class="guide" d="{frame.path([0, 1], [0, 1])}"/>')
    parts += [_curve(frame, line, number) for number, line in enumerate(lines)]
    body = f"<g>{''.join(parts)}</g>"
    legend = _legend([line.name for line in lines]) if len(lines) > 1 else ""
    return _svg(body, title) + legend


def interval_chart(
    names: Sequence[str],
    values: Sequence[tuple[float | None, float | None, float | None]],
    *,
    x_label: str,
    title: str,
) -> str:
    """One row a name: its estimate between the ends of its interval, where both are defined."""
    highest = max((high for *_, high in values if high), default=1.0)
    frame = _Frame((0, highest), (len(names) - 0.5, -0.5))
    parts = []
    for row, (name, (value, low, high)) in enumerate(zip(names, values, strict=True)):
        y = frame.py(row)
        if value is not None and low is not None and high is not None:
            ends = f'x1="{frame.px(max(low, 0))}" x2="{frame.px(high)}" y1="{y}" y2="{y}"'
            parts.append(f'<line class="span" {ends}/>')
            parts.append(f'<circle class="dot" cx="{frame.px(max(value, 0))}" cy="{y}" r="4.5"/>')
        parts.append(f'<text class="name" x="{LEFT}" y="{y - 9}">{escape(name)}</text>')
    for tick in ticks(*frame.x):
        place = f'x="{frame.px(tick)}" y="{HEIGHT - BOTTOM + 16}"'
        parts.append(f'<text class="tick mid" {place}>{tick:g}</text>')
    label = f'<text class="label mid" x="{WIDTH / 2}" y="{HEIGHT - 8}">{escape(x_label)}</text>'
    return _svg("".join(parts) + label, title)


def ticks(low: float, high: float, *, n: int = 5, least: float = 0.0) -> list[float]:
    """Round numbers between two ends, at least so far apart.

    Examples
    --------
    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> ticks(19.5, 20.5, least=1.0)
    [20.0]
    """
    low, high = min(low, high), max(low, high)
    raw = max((high - low) / n, least)
    size = 10.0 ** np.floor(np.log10(raw))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= raw * 0.999)
    first = np.ceil(low / step - 1e-9)
    count = int(np.floor(high / step + 1e-9) - first) + 1
    return [float(np.round((first + i) * step, 10)) + 0.0 for i in range(count)]


def _curve(frame: _Frame, line: Line, number: int) -> str:
    x, y = _finite(line)
    parts = []
    if len(line.low) and not line.points:
        edge = [
            *zip(line.x, line.high, strict=True),
            *list(zip(line.x, line.low, strict=True))[::-1],
        ]
        inside = [(a, frame.inside(b)) for a, b in edge if _known(a, b)]
        if inside:
            across, up = zip(*inside, strict=True)
            parts.append(f'<path class="band c{number}" d="{frame.path(across, up)} Z"/>')
    if x:
        clipped = [frame.inside(value) for value in y]
        parts.append(f'<path class="line c{number}" d="{frame.path(x, clipped)}"/>')
    if line.points:
        parts += [_point(frame, values, number) for values in zip(*_columns(line), strict=True)]
    return "".join(parts)


def _columns(line: Line) -> tuple[Sequence[float], ...]:
    return line.x, line.y, line.low or line.y, line.high or line.y


def _point(frame: _Frame, values: tuple[float, ...], number: int) -> str:
    if not _known(*values):
        return ""
    x, y, low, high = values
    y, low, high = (frame.inside(value) for value in (y, low, high))
    across = frame.px(x)
    bar = f'<path class="line c{number}" d="M{across},{frame.py(low)} V{frame.py(high)}"/>'
    return bar + f'<circle class="dot c{number}" cx="{across}" cy="{frame.py(y)}" r="3"/>'


def _finite(line: Line) -> tuple[list[float], list[float]]:
    kept = [(a, b) for a, b in zip(line.x, line.y, strict=True) if _known(a, b)]
    return [a for a, _ in kept], [b for _, b in kept]


def _known(*values: float | None) -> bool:
    return all(value is not None and np.isfinite(value) for value in values)


def _ranges(lines: Sequence[Line]) -> tuple[tuple[float, float], tuple[float, float]]:
    points = [_finite(line) for line in lines]
    x = [value for xs, _ in points for value in xs] or [0.0]
    y = [value for _, ys in points for value in ys] or [0.0]
    return (min(x), max(x)), (min(0.0, *y) if len(y) > 1 else 0.0, max(y))


def _widened(ends: tuple[float, float]) -> tuple[float, float]:
    return ends if ends[0] != ends[1] else (ends[0] - 0.5, ends[1] + 0.5)


def _legend(names: Sequence[str]) -> str:
    items = (f'<li class="c{number}">{escape(name)}</li>' for number, name in enumerate(names))
    return f'<ul class="legend">{"".join(items)}</ul>'


def _svg(body: str, title: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
    return f"{head}<title>{escape(title)}</title>{body}</svg>"
