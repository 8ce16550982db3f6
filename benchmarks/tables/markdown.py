"""Tables in Markdown, and the names of tables on the pages."""

from __future__ import annotations

from collections.abc import Sequence

from catalogue import TABLES
from declaration import Part

PART_MARKS: dict[Part, str] = {"tuning": " *", "held-back": "", "final": " †"}


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    rule = ["---"] * len(heads)
    return "\n".join("| " + " | ".join(line) + " |" for line in (heads, rule, *lines))


def marked(name: str) -> str:
    """The name of a table with the mark of its part."""
    return name + PART_MARKS[TABLES[name].part]


def bags_head(bags: str) -> str:
    """The kind of bags in words."""
    return "natural groups" if bags == "natural" else f"bags of {bags}"
