"""The command line: one command a file, imported when called."""

from __future__ import annotations

from typing import Annotated

import typer

import unbag
from unbag.cli.command_group import LazyCommands

__all__ = ["app", "main"]


class UserCommands(LazyCommands):
    """What a person with a table calls."""

    package = "unbag.cli"
    names = ("demo", "fit", "predict", "evaluate", "check", "report", "plan")


app = typer.Typer(
    cls=UserCommands,
    name="unbag",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"unbag {unbag.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Learn a classifier for single instances from the average labels of bags."""


def main() -> None:
    """Run the command line."""
    app()
