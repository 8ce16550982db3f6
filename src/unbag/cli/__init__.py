"""The command line: parse and dispatch, one command a file."""

from __future__ import annotations

from typing import Annotated

import typer

import unbag
from unbag.cli.check import check
from unbag.cli.demo import demo
from unbag.cli.evaluate import evaluate
from unbag.cli.fit import fit
from unbag.cli.group import Commands, flowing
from unbag.cli.plan import plan
from unbag.cli.predict import predict
from unbag.cli.report import report
from unbag.cli.reproduce import What, merge, reproduce
from unbag.cli.reproduce_theory import theory

__all__ = ["app", "main", "reproductions"]

app = typer.Typer(
    cls=Commands,
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


for command in (demo, fit, predict, evaluate, check, report, plan):
    app.command(help=flowing(str(command.__doc__)))(command)

reproductions = typer.Typer(
    cls=Commands,
    help="The paper's tables, figures and claims, each from one command.",
    no_args_is_help=True,
)
app.add_typer(reproductions, name="reproduce")
for what in What:
    reproductions.command(what.value, help=what.help, short_help=what.summary)(reproduce)
for other in (theory, merge):
    reproductions.command(help=flowing(str(other.__doc__)))(other)


def main() -> None:
    """Run the command line."""
    app()
