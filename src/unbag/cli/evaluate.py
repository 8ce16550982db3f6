"""`unbag evaluate`: how good a model is on bags it has not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import typer

from unbag.bags import Bags
from unbag.cli import options as opt
from unbag.cli.console_tables import show_metrics, show_seen
from unbag.errors import TableError
from unbag.evaluation import evaluate_bags
from unbag.tables import BagTable, Roles, make_bags_of, scan_table
from unbag.tables.fingerprints import share_seen
from unbag.tables.model import TableModel
from unbag.tables.record import evaluation_record

__all__ = ["evaluate"]


def evaluate(
    model: opt.Model,
    table: opt.TablePath,
    bag: opt.BagAgain = None,
    proportion: opt.Proportion = None,
    count: opt.Count = None,
    size: opt.Size = None,
    noise: opt.Noise = None,
    bags_table: opt.BagsTable = None,
    confidence: opt.Confidence = 0.95,
    as_json: opt.Json = False,
) -> None:
    """Estimate error, AUC, calibration and more from bags, each with an interval.

    The bags must be others than those the model was fitted on; it warns of those that are not.
    Columns of bags are those named to `unbag fit`, unless named again (other names in the order
    of the fit); `--size ""` and `--noise ""` say that there is none.

    Examples:

      unbag evaluate model/ held_out.parquet

      unbag evaluate model/ next_month.csv --bag group --count conversions --json
    """
    fitted = TableModel.load(model)
    roles = roles_again(fitted.roles, bag, proportion, count, size, noise)
    roles = replace(roles, task=fitted.classifier.task_)
    if len(roles.targets) != len(fitted.roles.targets):
        raise TableError(f"The model has {len(fitted.roles.targets)} outputs; name as many.")
    rows = scan_table(table, roles, bag_table=bags_table, encoder=fitted.encoder)
    scores, bags = scored_bags(rows, fitted)
    found = evaluate_bags(scores, bags, confidence=confidence)
    record = evaluation_record(found, fitted.roles.targets)
    share, words = share_seen(rows.index, fitted.record.get("seen", "")), opt.console(as_json)
    show_metrics(record, words)
    show_seen(share, words)
    opt.answer(record | {"share_seen": share}, as_json)


def roles_again(
    roles: Roles,
    bag: str | None,
    proportion: list[str] | None,
    count: list[str] | None,
    size: str | None,
    noise: str | None,
) -> Roles:
    """Columns of bags: as before, or as named now; an empty name means none."""
    if proportion and count:
        raise typer.BadParameter("give either --proportion or --count.")
    named = bool(proportion or count)
    if named and roles.noise and noise is None and bool(count) != bool(roles.counts):
        raise typer.BadParameter(
            "a proportion and a count do not have the same noise; name it again with --noise."
        )
    return Roles(
        bag or roles.bag,
        _in_order(proportion or [], roles.targets) if named else roles.proportions,
        _in_order(count or [], roles.targets) if named else roles.counts,
        _again(size, roles.size),
        _again(noise, roles.noise),
    )


def _in_order(names: list[str], before: tuple[str, ...]) -> tuple[str, ...]:
    """The same names stand for the same outputs; others, for those in their place."""
    return before if sorted(names) == sorted(before) else tuple(names)


def _again(name: str | None, before: str | None) -> str | None:
    return before if name is None else name or None


def scored_bags(table: BagTable, model: TableModel) -> tuple[np.ndarray, Bags]:
    """Scores of all rows, and the bags they are in; features are in memory chunk by chunk."""
    n_rows, start = table.index.n_rows, 0
    scores = np.empty((n_rows, len(model.outputs)))
    codes = np.empty(n_rows, dtype=np.int32)
    for chunk, part in model.predict_chunks(table.source, keep=[table.roles.bag]):
        stop = start + len(part)
        scores[start:stop] = part
        codes[start:stop] = table.index.codes(chunk, table.roles.bag)
        start = stop
    return scores, make_bags_of(np.empty((n_rows, 0), dtype=np.float32), codes, table.index)
