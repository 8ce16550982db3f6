"""`unbag evaluate`: metrics of a model on new bags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from unbag.cli import options as opt

if TYPE_CHECKING:
    from unbag.tables import Roles


def evaluate(
    model: opt.Model,
    table: opt.TablePath,
    bag: opt.BagAgain = None,
    proportion: opt.Proportion = None,
    count: opt.Count = None,
    average: opt.Average = None,
    total: opt.Sum = None,
    size: opt.Size = None,
    noise: opt.Noise = None,
    bags_table: opt.BagsTable = None,
    confidence: opt.Confidence = 0.95,
    grouping: opt.Grouping = None,
    blocks: opt.Blocks = None,
    smoothness: opt.Smoothness = None,
    as_json: opt.Json = False,
) -> None:
    """Estimate error, AUC, calibration and more from bags, each with an interval.

    Use new bags; the command warns if the model was trained on some of them. Columns are those of
    the fit unless named again, in the same order; `--size ""` and `--noise ""` mean no column. For
    natural groups, such as precincts, `--grouping natural` gives bounds and a test of fit, and with
    `--smoothness` intervals; `--blocks` names a column that groups share, such as a county.

    Examples:

      unbag evaluate model/ held_out.parquet

      unbag evaluate model/ next_month.csv --bag group --count conversions --json

      unbag evaluate model/ wards.csv --grouping natural --blocks county --smoothness 0.5
    """
    from unbag.tables import TableModel
    from unbag.tables.record import evaluation_record

    if sum(map(bool, (proportion, count, average, total))) > 1:
        raise typer.BadParameter("give one of --proportion, --count, --average and --sum.")
    fitted = TableModel.load(model)
    grouping = grouping or fitted.grouping
    if grouping == "random" and not (blocks is None and smoothness is None):
        raise typer.BadParameter("--blocks and --smoothness need --grouping natural.")
    proportion = proportion or ([average] if average else None)
    count = count or ([total] if total else None)
    roles = roles_again(fitted.roles, bag, proportion, count, size, noise, blocks)
    found, share = fitted.evaluate_with_overlap(
        table,
        bag_table=bags_table,
        roles=roles,
        confidence=confidence,
        grouping=grouping,
        smoothness=smoothness,
    )
    words = opt.console(as_json)
    words.print(found)
    record = evaluation_record(found) | {"grouping": found.grouping}
    if share:
        words.print(
            f"! The model was fitted on {100 * share:.3g} % of these bags, by their IDs, sizes and "
            "proportions: it may do worse on others."
        )
    opt.answer(record | {"training_share": share}, as_json)


def roles_again(
    roles: Roles,
    bag: str | None,
    proportion: list[str] | None,
    count: list[str] | None,
    size: str | None,
    noise: str | None,
    blocks: str | None = None,
) -> Roles:
    """Columns of the fit, or as named now; an empty name means none."""
    from unbag.tables import Roles

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
        block=_again(blocks, roles.block),
    )


def _in_order(names: list[str], before: tuple[str, ...]) -> tuple[str, ...]:
    """Match targets by name if the names are those of the fit, otherwise by position."""
    return before if sorted(names) == sorted(before) else tuple(names)


def _again(name: str | None, before: str | None) -> str | None:
    return before if name is None else name or None
