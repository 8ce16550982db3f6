"""Templates of pages: one layout, values escaped, unknown names refused."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

__all__ = ["number", "percent", "render_template"]


def render_template(name: str, **values: Any) -> str:
    """Fill in a template of this folder."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"percent": percent, "number": number}
    return environment.get_template(name).render(**values)


def _read(name: str) -> str:
    return files("unbag.report").joinpath(name).read_text(encoding="utf-8")


def percent(value: float | None) -> str:
    """Share as a percentage.

    Examples
    --------
    >>> percent(0.1234), percent(None)
    ('12.3 %', 'not defined')
    """
    return "not defined" if value is None else f"{100 * value:.1f} %"


def number(value: float | None, digits: int = 4) -> str:
    """Number with few digits."""
    return "not defined" if value is None else f"{value:.{digits}f}"
