"""`unbag-paper`: the paper's tables, figures and claims, each from one command."""

from __future__ import annotations

import typer

from unbag.cli.command_group import CommandGroup, flowing
from unbag_paper.cli import images, report, theory
from unbag_paper.cli.reproduce import What, merge, reproduce

__all__ = ["app", "main"]


app = typer.Typer(
    cls=CommandGroup,
    name="unbag-paper",
    help="The paper's tables, figures and claims, each from one command.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (images.images, theory.theory, report.report):
    app.command(help=flowing(str(command.__doc__)))(command)
for what in What:
    app.command(what.value, help=what.help, short_help=what.summary)(reproduce)
app.command(help=flowing(str(merge.__doc__)))(merge)


def main() -> None:
    """Run the command line."""
    app()
