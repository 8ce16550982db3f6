"""`unbag predict`: scores of single rows, chunk by chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from unbag.cli import options as opt
from unbag.errors import TableError
from unbag.estimators.table_model import TableModel
from unbag.tables import Chunk, TableSource, open_table
from unbag.tables.roles import require
from unbag.tables.writing import write_table

__all__ = ["predict"]


def predict(
    model: opt.Model,
    table: opt.TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV or Parquet file to write.")],
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to keep; by default the keys, and the bag if it is there."),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Predict single rows of a table; memory does not grow with the table.

    The output has a row for each row of the table, in the same order: the columns kept, the score
    (probability of a positive label) and the prediction.

    Examples:

      unbag predict model/ new.parquet -o scores.parquet

      unbag predict model/ "days/*.csv" --keep event_id -o scores.csv
    """
    fitted, source = TableModel.load(model), open_table(table)
    kept = kept_columns(fitted, source, keep)
    require(source.names, [*kept, *fitted.encoder.names])
    positives = np.zeros(len(fitted.outputs))
    with write_table(output) as writer:
        for chunk, scores in fitted.predict_chunks(source, keep=kept):
            batch, predicted = output_batch(chunk, scores, kept, fitted)
            positives += predicted.sum(axis=0)
            writer.add(batch)
    rates = dict(zip(fitted.outputs, (positives / writer.rows).tolist(), strict=True))
    opt.console(as_json).print(f"{writer.rows:,} rows predicted; they are in {output}.")
    opt.answer({"output": str(output), "rows": writer.rows, "predicted": rates}, as_json)


def kept_columns(model: TableModel, source: TableSource, keep: list[str] | None) -> list[str]:
    """Columns of the table that the output repeats."""
    if keep:
        return list(dict.fromkeys(keep))
    keys = [*model.roles.keys, model.roles.bag]
    return [name for name in keys if name in source.names]


def output_batch(
    chunk: Chunk, scores: np.ndarray, kept: list[str], model: TableModel
) -> tuple[pa.RecordBatch, np.ndarray]:
    """Columns kept, scores, and predictions; and the latter as 0 and 1 for each output."""
    columns: dict[str, Any] = {name: chunk.batch.column(name) for name in kept}
    names = model.outputs
    if model.classifier.task_ == "binary":
        predicted = (scores > 0.5).astype(np.int8)
        made: dict[str, Any] = {"score": scores[:, 0], "prediction": predicted[:, 0]}
    elif model.classifier.task_ == "multiclass":
        best = scores.argmax(axis=1)
        predicted = np.eye(len(names), dtype=np.int8)[best]
        made = {f"score_{name}": scores[:, i] for i, name in enumerate(names)}
        made["prediction"] = pa.array(names).take(pa.array(best))
    else:
        predicted = (scores > 0.5).astype(np.int8)
        made = {f"score_{name}": scores[:, i] for i, name in enumerate(names)}
        made |= {f"prediction_{name}": predicted[:, i] for i, name in enumerate(names)}
    for name in made:
        if name in columns:
            raise TableError(f"Column {name!r} cannot be kept: the output has one of that name.")
    return pa.record_batch(columns | made), predicted
