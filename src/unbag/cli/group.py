"""A group of commands that turns our errors into one message and exit code 1."""

from __future__ import annotations

from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from unbag.errors import UnbagError

__all__ = ["Commands"]


class Commands(TyperGroup):
    """Prints an `UnbagError`, or one of the file system, as one line on the error stream."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (UnbagError, OSError) as error:
            console = Console(stderr=True)
            # No markup: what stands in brackets, such as an extra's name, is part of the message.
            console.print(
                f"error: {error}", style="red", highlight=False, markup=False, soft_wrap=True
            )
            raise typer.Exit(1) from None
