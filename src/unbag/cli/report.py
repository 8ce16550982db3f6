"""`unbag report`: the page about a model, made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unbag.cli import options as opt
from unbag.estimators.table_model import TableModel
from unbag.report import render_report
from unbag.tables.writing import write_text

__all__ = ["report"]


def report(
    model: opt.Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    as_json: opt.Json = False,
) -> None:
    """Write one HTML page about a model: data, checks, error, curves, settings.

    The page needs no network and no other file.

    Examples:

      unbag report model/ -o report.html
    """
    record = TableModel.load(model).record
    write_text(output, render_report(record))
    opt.console(as_json).print(f"The report is in {output}.")
    opt.answer({"output": str(output)}, as_json)
