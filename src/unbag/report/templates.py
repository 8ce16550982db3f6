"""Render templates: values are escaped, undefined names are errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import Any

__all__ = ["number", "percent", "render_template"]


def render_template(
    name: str, *, packages: Sequence[str] = ("unbag.report",), **values: Any
) -> str:
    """Fill in a template, found in the first of some packages that has it."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(partial(_read, packages)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": number}
    return environment.get_template(name).render(**values)


def _read(packages: Sequence[str], name: str) -> str | None:
    found = (files(package).joinpath(name) for package in packages)
    return next((path.read_text(encoding="utf-8") for path in found if path.is_file()), None)


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
