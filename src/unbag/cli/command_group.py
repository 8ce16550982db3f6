"""A group of commands that report errors in one line, with exit code 1."""

from __future__ import annotations

import warnings
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperGroup

from unbag.errors import UnbagError


class CommandGroup(TyperGroup):
    """Commands that print warnings, an `UnbagError` or an `OSError` as one line on stderr."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # whoever read the output, such as `head`, has enough
        except (UnbagError, OSError) as error:
            _print_line(f"error: {error}", style="red")
            raise typer.Exit(1) from None


def _show_warning(message: Warning | str, *_: Any) -> None:
    _print_line(f"warning: {message}", style="yellow")


def _print_line(text: str, *, style: str) -> None:
    from unbag.cli.options import console

    console(as_json=True).print(text, style=style, soft_wrap=True)


def flowing(text: str) -> str:
    """Help text whose paragraphs are wrapped by the terminal."""
    return "\n\n".join(part.replace("\n", " ") for part in cleandoc(text).split("\n\n"))
