"""``unbag plan``: the number and size of bags needed for an error."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from unbag.cli import options as opt
from unbag.errors import ConditionError

if TYPE_CHECKING:
    from unbag.planning import BagPlan

Number = float | None
Whole = int | None


def plan(
    context: typer.Context,
    error: Annotated[Number, typer.Option(help="Required excess error.")] = None,
    bag_size: Annotated[Whole, typer.Option(help="Instances per bag.")] = None,
    n_bags: Annotated[Whole, typer.Option("--bags", help="Number of available bags.")] = None,
    n_instances: Annotated[
        Whole, typer.Option("--instances", help="Available instances, if the bag size is free.")
    ] = None,
    n_hypotheses: Annotated[
        Whole, typer.Option("--hypotheses", help="Number of hypotheses in a finite class.")
    ] = None,
    vc_dimension: Annotated[Whole, typer.Option("--vc", help="VC dimension of the class.")] = None,
    best_error: Annotated[
        float, typer.Option(help="Error of the best hypothesis; 0 in the realizable case.")
    ] = 0.0,
    confidence: Annotated[float, typer.Option(help="Confidence level of the result.")] = 0.95,
    rule: Annotated[
        str, typer.Option(help="Rule: debiased_square, eprm or proportion_square.")
    ] = "debiased_square",
    as_json: opt.Json = False,
) -> None:
    """Compute how many bags are needed, which bag size is best, or which error to expect.

    Pass --error and --bag-size for the number of bags, --bags and --bag-size for the error, or
    --instances for the bag size. Describe the hypothesis class by --hypotheses or --vc.

    Examples:

      unbag plan --error 0.01 --bag-size 20 --hypotheses 1000

      unbag plan --bags 500 --bag-size 20 --vc 3 --json

      unbag plan --instances 5000 --hypotheses 100 --best-error 0.1
    """
    from unbag.planning import plan_bags

    options: dict[str, Any] = {
        "n_bags": n_bags,
        "n_instances": n_instances,
        "n_hypotheses": n_hypotheses,
        "vc_dimension": vc_dimension,
        "best_error": best_error,
        "confidence": confidence,
        "rule": rule,
    }
    try:
        found = plan_bags(error, bag_size, **options)
    except ConditionError as refusal:
        raise typer.BadParameter(as_typed(str(refusal), context)) from None
    show_plan(found, opt.console(as_json))
    record = {
        "asked": found.asked,
        "answer": asdict(found.answer),
        "table": [asdict(row) for row in found.table],
        "sentence": str(found),
    }
    opt.answer(record, as_json)


def as_typed(words: str, context: typer.Context) -> str:
    """Replace names of Python arguments by names of options."""
    options = {param.name: param.opts[0] for param in context.command.params}
    return re.sub(r"`(\w+)`", lambda found: options.get(found[1], found[0]), words)


def show_plan(found: BagPlan, console: Console) -> None:
    """Print the answer and its table."""
    table = Table("bag size", "bags", "instances", "excess error", box=None)
    for row in found.table:
        style = "bold" if row == found.answer else None
        cells = (row.bag_size, row.n_bags, row.n_instances, f"{row.error:.3g}")
        table.add_row(*(str(cell) for cell in cells), style=style)
    console.print(table)
    console.print(str(found))
