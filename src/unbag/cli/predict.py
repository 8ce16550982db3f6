"""`unbag predict`: scores of single rows, chunk by chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unbag.cli import options as opt


def predict(
    model: opt.Model,
    table: opt.TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file to write.")],
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to copy; by default the keys, and the bag if present."),
    ] = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.Json = False,
) -> None:
    """Predict individual rows of a table, in constant memory.

    The output has one row per row of the table, in the same order: kept columns, the score
    (probability of a positive label) and the prediction.

    Examples:

      unbag predict model/ new.parquet -o scores.parquet

      unbag predict model/ "days/*.csv" --keep event_id -o scores.csv
    """
    from unbag.frames.chunks import require
    from unbag.tables import TableModel, open_table
    from unbag.tables.writing import write_table

    fitted, source = TableModel.load(model), open_table(table)
    kept = fitted.kept(source.names) if not keep else list(dict.fromkeys(keep))
    require(source.names, [*kept, *fitted.encoder.names])
    batches = fitted.predict_batches(source, keep=kept)
    n_rows = write_table(output, batches, overwrite=overwrite, source=source)
    opt.console(as_json).print(f"{n_rows:,} rows predicted; they are in {output}.")
    opt.answer({"output": str(output), "rows": n_rows, "kept": kept}, as_json)
