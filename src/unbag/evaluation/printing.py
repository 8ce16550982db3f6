"""Results displayed as tables: in print, on a console and in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any, ClassVar


@dataclass(frozen=True)
class TextTable:
    """A table of text, with a sentence before and after it; empty columns are left out."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    before: str = ""
    after: str = ""

    def _lines(self) -> list[tuple[str, ...]]:
        parts = zip(self.columns, *self.rows, strict=True)
        return list(zip(*(part for part in parts if any(part[1:]) or not self.rows), strict=True))

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(self.title))
        names, *rows = self._lines()
        for name in names:  # long names are folded, never cut off
            table.add_column(Text(name), overflow="fold")
        for row in rows:  # names may look like markup
            table.add_row(*map(Text, row))
        parts = Text(self.before), table, Text(self.after)
        return Group(*(part for part in parts if part))

    def _repr_html_(self) -> str:
        names, *rows = self._lines()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        body = "".join(f"<tr>{line}</tr>" for line in (head, *lines))
        table = f"<table><caption>{escape(self.title)}</caption>{body}</table>"
        before, after = (f"<p>{escape(t)}</p>" if t else "" for t in (self.before, self.after))
        return f"{before}{table}{after}"


def readable(value: float) -> str:
    """Four decimals, and none from a thousand on."""
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.0f}"


class Printed:
    """Base of results that are displayed as a table."""

    _width: ClassVar[int] = 100

    def _table(self) -> TextTable:
        raise NotImplementedError

    def __rich__(self) -> Any:
        return self._table().__rich__()

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def __str__(self) -> str:
        from rich.console import Console

        stream = StringIO()
        Console(file=stream, width=self._width, color_system=None).print(self)
        return stream.getvalue()
