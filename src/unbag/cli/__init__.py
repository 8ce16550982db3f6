"""The command line: one command per file, with imports inside the commands."""

from __future__ import annotations

from typing import Annotated

import typer

import unbag
from unbag.cli import check, demo, evaluate, fit, plan, predict, report
from unbag.cli.command_group import CommandGroup, flowing

__all__ = ["app", "main"]


app = typer.Typer(
    cls=CommandGroup,
    name="unbag",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (
    demo.demo,
    fit.fit,
    predict.predict,
    evaluate.evaluate,
    check.check,
    report.report,
    plan.plan,
):
    app.command(help=flowing(str(command.__doc__)))(command)


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
