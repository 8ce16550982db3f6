"""Tables of text as Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["FORMATS", "Table", "Text", "render"]

_LONGEST_LINE = 60  # a line of such a column alone would fill a page's width


@dataclass(frozen=True)
class Text:
    """What a cell says, and whether it stands out."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A caption, a header and rows of text; a rule is drawn where the first column changes."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]


def render(title: str, parts: Sequence[Table | str], *, format: str) -> str:
    """Render tables and paragraphs.

    Parameters
    ----------
    title : str
    parts : sequence of Table or str
    format : {"md", "tex", "html"}

    Examples
    --------
    >>> table = Table("Errors", ("net", "DSQ"), ((Text("linear"), Text("9.5", bold=True)),))
    >>> print(render("MNIST", [table], format="md"))
    # MNIST
    <BLANKLINE>
    Errors
    <BLANKLINE>
    | net | DSQ |
    |---|---|
    | linear | **9.5** |
    <BLANKLINE>
    """
    heading, paragraph, table = FORMATS[format]
    body = [heading(title)]
    body += [paragraph(part) if isinstance(part, str) else table(part) for part in parts]
    return _PAGES.get(format, "{}\n").format("\n\n".join(body))


def _markdown_table(table: Table) -> str:
    lines = [table.header, ("---",) * len(table.header)]
    lines += [tuple(f"**{t.text}**" if t.bold else t.text for t in row) for row in table.rows]
    bars = ["| " + " | ".join(line) + " |" for line in lines]
    bars[1] = bars[1].replace(" ", "")
    return table.caption + "\n\n" + "\n".join(bars)


def _latex_table(table: Table) -> str:
    lines, previous = [], None
    for row in table.rows:
        if previous is not None and row[0].text != previous:
            lines.append(r"\midrule")
        previous = row[0].text
        lines.append(" & ".join(_latex_text(t) for t in row) + r" \\")
    head = " & ".join(_escape_latex(name) for name in table.header) + r" \\"
    widths = [
        max((len(row[i].text) for row in table.rows), default=0) for i in range(len(table.header))
    ]
    columns = "".join(_latex_column(i, width) for i, width in enumerate(widths))
    return "\n".join(
        [
            r"\begin{table}[h]\centering\footnotesize",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{_escape_latex(table.caption)}}}",
            r"\end{table}",
        ]
    )


def _latex_column(number: int, width: int) -> str:
    """Sentences are broken into lines; bag sizes and nets stand to the left."""
    return "p{7cm}" if width > _LONGEST_LINE else "l" if number < 2 else "c"


def _latex_text(text: Text) -> str:
    escaped = _escape_latex(text.text)
    return rf"\textbf{{{escaped}}}" if text.bold else escaped


def _escape_latex(text: str) -> str:
    escaped = re.sub(r"([%&#_$])", r"\\\1", text)
    return escaped.replace("±", r"$\pm$").replace("−", "$-$")


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.header)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{_html_text(t)}</td>" for t in row) + "</tr>" for row in table.rows
    )
    caption = html.escape(table.caption)
    return (
        f"<table>\n<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>"
    )


def _html_text(text: Text) -> str:
    escaped = html.escape(text.text)
    return f"<b>{escaped}</b>" if text.bold else escaped


_PAGES = {
    "html": """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>unbag</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; color: #222 }}
table {{ border-collapse: collapse; margin: 1.5rem 0; font-variant-numeric: tabular-nums }}
caption {{ text-align: left; padding: .4rem 0; color: #555 }}
th, td {{ padding: .2rem .7rem; text-align: left; border-bottom: 1px solid #ddd }}
</style>
{}
</html>
""",
}

_Writer = Callable[[str], str]

FORMATS: dict[str, tuple[_Writer, _Writer, Callable[[Table], str]]] = {
    "md": (lambda title: f"# {title}", str, _markdown_table),
    "tex": (lambda title: f"% {title}", _escape_latex, _latex_table),
    "html": (
        lambda title: f"<h1>{html.escape(title)}</h1>",
        lambda text: f"<p>{html.escape(text)}</p>",
        _html_table,
    ),
}
