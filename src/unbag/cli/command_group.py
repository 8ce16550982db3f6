"""Commands that are imported when called; they fail in one message and exit code 1."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperGroup

from unbag.errors import UnbagError

__all__ = ["LazyCommands", "flowing"]


class LazyCommands(TyperGroup):
    """A group whose command `name` is the function `name` of the module `package.name`.

    It prints a warning, an `UnbagError` or an error of the file system as one line on the error
    stream. Subclasses state `package` and `names`.
    """

    package: str
    names: Sequence[str] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, in the order of help."""
        return [*self.names, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command's module."""
        if cmd_name not in self.names:
            return super().get_command(ctx, cmd_name)
        function = getattr(import_module(f"{self.package}.{cmd_name}"), cmd_name)
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(cmd_name, help=flowing(str(function.__doc__)))(function)
        return typer.main.get_command(app)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                return super().invoke(ctx)
        except (UnbagError, OSError) as error:
            _print_line(f"error: {error}", style="red")
            raise typer.Exit(1) from None


def _show_warning(message: Warning | str, *_: Any) -> None:
    _print_line(f"warning: {message}", style="yellow")


def _print_line(text: str, *, style: str) -> None:
    from unbag.cli.options import console

    console(as_json=True).print(text, style=style, soft_wrap=True)


def flowing(text: str) -> str:
    """Help whose paragraphs break where the terminal does, not where the source does.

    Examples
    --------
    >>> flowing("One.\\n\\n    Two\\n    lines.\\n\\n      an example")
    'One.\\n\\nTwo lines.\\n\\n  an example'
    """
    return "\n\n".join(part.replace("\n", " ") for part in cleandoc(text).split("\n\n"))
