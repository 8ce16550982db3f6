"""Draw a chart as SVG text."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.charts.chart import Chart, Series

WIDTH, HEIGHT, ROW = 420, 260, 30
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 44
COLOURS = ("#2563a8", "#c2571a", "#2f7d4f", "#7a4fa3", "#8a6d1a", "#a8325e")
# Attributes, which the style sheet of a page overrides by the classes.
PAINT = {
    "line": 'fill="none" stroke="{}" stroke-width="2"',
    "band": 'fill="{}" opacity=".18"',
    "span": 'stroke="{}" stroke-width="6" opacity=".35" stroke-linecap="round"',
    "dot": 'fill="{}"',
    "bar": 'fill="{}"',
}
GRID = 'class="grid" stroke="#d9dfe7" fill="none"'
GUIDE = 'class="guide" stroke="#5b6675" stroke-dasharray="4 4" fill="none"'
TEXT = 'font-family="sans-serif" font-size="12" fill="#5b6675"'
MIDDLE, END = 'class="mid" text-anchor="middle"', 'class="end" text-anchor="end"'


def render(chart: Chart) -> str:
    """SVG text of a chart."""
    frame, title = _Frame(chart), escape(chart.title)
    guide = f'<path {GUIDE} d="{frame.path([(0, 0), (1, 1)])}"/>' if chart.unit else ""
    drawn = [getattr(frame, s.kind)(s, number) for number, s in enumerate(chart.series)]
    legend, height = _legend(chart, frame.height)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
    body = "".join([f"<title>{title}</title>", frame.axes(), guide, *drawn, legend])
    return f'{head} {TEXT} aria-label="{title}">{body}</svg>'


def _paint(kind: str, number: int) -> str:
    number %= len(COLOURS)
    return f'class="{kind} c{number}" {PAINT[kind].format(COLOURS[number])}'


class _Frame:
    """Axes that map values to pixels."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.height = max(HEIGHT, TOP + BOTTOM + ROW * len(chart.names))
        self.x, self.y = chart.ends()

    def px(self, value: float) -> float:
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        return round(LEFT + min(max(share, 0), 1) * (WIDTH - LEFT - RIGHT), 1)

    def py(self, value: float) -> float:
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return round(self.height - BOTTOM - min(max(share, 0), 1) * (self.height - TOP - BOTTOM), 1)

    def path(self, points: list[tuple[float, float]]) -> str:
        return "M" + " L".join(f"{self.px(x)},{self.py(y)}" for x, y in points)

    def axes(self) -> str:
        chart, bottom = self.chart, self.height - BOTTOM
        parts = []
        for row, name in enumerate(chart.names):
            place = f'x="{LEFT}" y="{self.py(row) - 9}"'
            parts.append(f'<text class="name" {place}>{escape(name)}</text>')
        for tick in [] if chart.names else ticks(*self.y):
            height = self.py(tick)
            parts.append(f'<path {GRID} d="M{LEFT},{height} H{WIDTH - RIGHT}"/>')
            parts.append(f'<text {END} x="{LEFT - 6}" y="{height + 4}">{tick:g}</text>')
        for tick in ticks(*self.x, least=1.0 if chart.whole else 0.0):
            place = f'x="{self.px(tick)}" y="{bottom + 16}"'
            parts.append(f"<text {MIDDLE} {place}>{tick:g}</text>")
        middle = (LEFT + WIDTH - RIGHT) / 2
        place = f'x="{middle}" y="{self.height - 8}"'
        parts.append(f"<text {MIDDLE} {place}>{escape(chart.x_label)}</text>")
        upright = f'transform="translate(12,{(bottom + TOP) / 2}) rotate(-90)"'
        parts.append(f"<text {MIDDLE} {upright}>{escape(chart.y_label)}</text>")
        return "".join(parts)

    def bars(self, series: Series, number: int) -> str:
        parts = []
        for count, low, high in zip(series.y, series.x[:-1], series.x[1:], strict=True):
            left, width = self.px(low) + 0.5, max(self.px(high) - self.px(low) - 1, 0.5)
            place = f'x="{left}" y="{self.py(count)}" width="{width:.1f}"'
            height = round(self.py(0) - self.py(count), 1)
            parts.append(f'<rect {_paint("bar", number)} {place} height="{height}"/>')
        return "".join(parts)

    def line(self, series: Series, number: int) -> str:
        rows = series.rows()
        if not rows:
            return ""
        band = ""
        if len(series.low):
            edge = [(x, high) for x, _, _, high in rows] + [(x, low) for x, _, low, _ in rows[::-1]]
            band = f'<path {_paint("band", number)} d="{self.path(edge)} Z"/>'
        line = self.path([(x, y) for x, y, *_ in rows])
        return f'{band}<path {_paint("line", number)} d="{line}"/>'

    def points(self, series: Series, number: int) -> str:
        parts = []
        for x, y, low, high in series.rows():
            if low != high:
                bar = f"M{self.px(x)},{self.py(low)} V{self.py(high)}"
                parts.append(f'<path {_paint("line", number)} d="{bar}"/>')
            parts.append(_dot(self.px(x), self.py(y), number, 3.5))
        return "".join(parts)

    def intervals(self, series: Series, number: int) -> str:
        parts = []
        for x, y, low, high in series.rows():
            ends = f'x1="{self.px(low)}" x2="{self.px(high)}" y1="{self.py(y)}" y2="{self.py(y)}"'
            parts.append(f"<line {_paint('span', number)} {ends}/>")
            parts.append(_dot(self.px(x), self.py(y), number, 4.5))
        return "".join(parts)


def _dot(x: float, y: float, number: int, radius: float) -> str:
    return f'<circle {_paint("dot", number)} cx="{x}" cy="{y}" r="{radius}"/>'


def _legend(chart: Chart, top: int) -> tuple[str, int]:
    """Names of the series below the axes, wrapped, and the total height."""
    named = [(n, s.name) for n, s in enumerate(chart.series) if s.name]
    parts, x, y = [], LEFT, top + 8
    for number, name in named if len(named) > 1 else []:
        width = 30 + 7 * len(name)
        if x + width > WIDTH and x > LEFT:
            x, y = LEFT, y + 18
        parts.append(f'<path {_paint("line", number)} d="M{x},{y - 4} h14"/>')
        parts.append(f'<text x="{x + 18}" y="{y}">{escape(name)}</text>')
        x += width
    return "".join(parts), y + 8 if parts else top


def ticks(low: float, high: float, *, least: float = 0.0) -> list[float]:
    """Round numbers between two ends."""
    low, high = min(low, high), max(low, high)
    raw = max((high - low) / 5, least)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    count = math.floor(high / step + 1e-9) - first + 1
    return [round((first + i) * step, 10) + 0.0 for i in range(count)]
