"""Results displayed as tables: in print, on a console and in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import compress
from typing import Any, ClassVar


@dataclass(frozen=True)
class TextTable:
    """A table of text, with a sentence before and after it; empty columns are left out."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    before: str = ""
    after: str = ""

    def _lines(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Columns and rows without the columns that are empty in every row."""
        if not self.rows:
            return self.columns, self.rows
        kept = [any(cells) for cells in zip(*self.rows, strict=True)]
        columns, *rows = (list(compress(line, kept)) for line in (self.columns, *self.rows))
        return columns, rows

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(self.title))
        columns, rows = self._lines()
        for name in columns:  # long names are folded, never cut off
            table.add_column(Text(name), overflow="fold")
        for row in rows:  # names may look like markup
            table.add_row(*map(Text, row))
        parts = Text(self.before), table, Text(self.after)
        return Group(*(part for part in parts if part))

    def _repr_html_(self) -> str:
        columns, rows = self._lines()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        body = "".join(f"<tr>{line}</tr>" for line in (head, *lines))
        table = f"<table><caption>{escape(self.title)}</caption>{body}</table>"
        before, after = (f"<p>{escape(t)}</p>" if t else "" for t in (self.before, self.after))
        return f"{before}{table}{after}"


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
