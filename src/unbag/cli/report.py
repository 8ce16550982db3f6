"""`unbag report`: one page about a model, or about a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unbag.cli import options as opt
from unbag.errors import UnbagError
from unbag.estimators.table_model import TableModel
from unbag.experiments.store import STORE_NAME
from unbag.report import render_report
from unbag.tables.writing import write_page

__all__ = ["report"]


def report(
    source: Annotated[
        Path,
        typer.Argument(
            help="Model folder of `unbag fit`, or results of `unbag reproduce`: a folder that "
            f"holds {STORE_NAME}, or such a file."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Write one HTML page that needs no network and no other file.

    About a model: data, checks, error, curves, settings. About results: the paper's tables beside
    the published numbers, figures, claims, and where every row comes from.

    Examples:

      unbag report model/ -o report.html

      unbag report results/ -o report.html
    """
    write_page(output, page_about(source), overwrite=overwrite)
    opt.console(as_json).print(f"The report is in {output}.")
    opt.answer({"output": str(output)}, as_json)


def page_about(source: Path) -> str:
    """The page, by what the source holds."""
    if source.is_file() or (source / STORE_NAME).is_file():
        from unbag.report.results import render_results

        return render_results(source)
    if not (source / "manifest.json").is_file():
        raise UnbagError(
            f"{source} holds neither a model of `unbag fit` (no manifest.json) nor results of "
            f"`unbag reproduce` (no {STORE_NAME})."
        )
    return render_report(TableModel.load(source).record)
