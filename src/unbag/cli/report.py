"""`unbag report`: one page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unbag.cli import options as opt


def report(
    model: Annotated[Path, typer.Argument(help="Model folder of `unbag fit`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Write a self-contained HTML report about a model.

    It shows the data, the checks of the bags, the error, curves and settings.

    Examples:

      unbag report model/ -o report.html
    """
    from unbag.report import render_report
    from unbag.tables.model import TableModel
    from unbag.tables.writing import write_page

    write_page(output, render_report(TableModel.load(model).record), overwrite=overwrite)
    opt.console(as_json).print(f"The report is in {output}.")
    opt.answer({"output": str(output)}, as_json)
