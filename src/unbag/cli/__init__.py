"""The command line: parse and dispatch, one command a file."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from unbag.cli.demo import demo
from unbag.cli.plan import plan
from unbag.cli.reproduce import What, merge, reproduce
from unbag.cli.reproduce_theory import theory
from unbag.errors import UnbagError

__all__ = ["app", "main"]

app = typer.Typer(
    name="unbag",
    help="Learn a classifier for single instances from the average labels of bags.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (demo, plan):
    app.command()(command)

reproductions = typer.Typer(
    help="The paper's tables, figures and claims, each from one command.", no_args_is_help=True
)
app.add_typer(reproductions, name="reproduce")
for what in What:
    reproductions.command(what.value)(reproduce)
for command in (theory, merge):
    reproductions.command()(command)


def main() -> None:
    """Run the command line; an error of ours is one message and exit code 1, not a traceback."""
    try:
        app()
    except UnbagError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {error}", highlight=False)
        sys.exit(1)
