"""`unbag-paper report`: one page about a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unbag.cli import options as opt

__all__ = ["report"]


def report(
    source: Annotated[Path, typer.Argument(help="Folder of results, with rows.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Write a self-contained HTML report.

    It has the paper's tables beside the published numbers, figures, claims, and where every row
    comes from.

    Examples:

      unbag-paper report paper/results -o report.html
    """
    from unbag.tables.writing import write_page
    from unbag_paper.report.results import render_results

    write_page(output, render_results(source), overwrite=overwrite)
    opt.console(as_json).print(f"The report is in {output}.")
    opt.answer({"output": str(output)}, as_json)
