"""Shared arguments and options of commands, the console and JSON output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

if TYPE_CHECKING:
    from unbag.tables import Roles

Name = str | None
Names = list[str] | None
TablePath = Annotated[
    str,
    typer.Argument(
        help="A file, folder or quoted pattern: CSV, TSV, Parquet, Arrow or JSON lines."
    ),
]
Model = Annotated[Path, typer.Argument(help="Folder written by `unbag fit`.")]
Bag = Annotated[str, typer.Option(help="Column with the bag of each row.")]
BagAgain = Annotated[Name, typer.Option(help="Column of the bag, if not that of the fit.")]
Confidence = Annotated[float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.")]
Grouping = Annotated[
    Literal["random", "natural", "auto"] | None,
    typer.Option(help="Whether bags are random or natural groups; auto tests it. Default: as fit."),
]
Proportion = Annotated[
    Names, typer.Option(help="Column of the bag's share of positives; repeat for several classes.")
]
Count = Annotated[
    Names, typer.Option(help="Column of the bag's number of positives, instead of a share.")
]
Average = Annotated[
    Name, typer.Option(help="Column of the bag's average amount, to predict amounts.")
]
Sum = Annotated[
    Name, typer.Option("--sum", help="Column of the bag's total amount, instead of the average.")
]
Size = Annotated[Name, typer.Option(help="Column of the bag's size, checked against the rows.")]
Noise = Annotated[
    Name,
    typer.Option(
        help="Column with the variance of the noise in the proportion or count; or `rounding`."
    ),
]
BagsTable = Annotated[
    Name, typer.Option(help="Table with one row per bag, which has the columns of bags.")
]
Smoothness = Annotated[
    float | None,
    typer.Option(
        help="For natural groups: how far probabilities may depart from scores; 0.5 is half."
    ),
]
Blocks = Annotated[
    Name, typer.Option(help="Column of the bag's block, such as a day; blocks are held out whole.")
]
Key = Annotated[
    Names, typer.Option(help="Column of row IDs: copied to predictions, not used as a feature.")
]
Ignore = Annotated[Names, typer.Option(help="Column to leave out.")]
Category = Annotated[Names, typer.Option(help="Numeric column to treat as categories.")]
Number = Annotated[
    Names, typer.Option(help="Numeric column to use as a feature although it looks like an ID.")
]
Task = Annotated[
    Literal["binary", "multiclass", "multilabel"] | None,
    typer.Option(help="Meaning of several proportions; by default classes if they sum to one."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file or model.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON to standard output.")]


def roles_of(
    bag: str,
    proportion: list[str] | None,
    count: list[str] | None,
    average: str | None,
    total: str | None,
    **others: Any,
) -> Roles:
    """Roles of the columns from the options; `total` is a sum of amounts."""
    from unbag.tables import Roles

    if sum(map(bool, (proportion, count, average, total))) != 1:
        raise typer.BadParameter("give one of --proportion, --count, --average and --sum.")
    if average or total:
        others["task"] = "amount"
        proportion, count = [average] if average else None, [total] if total else None
    others |= {"proportions": proportion, "counts": count}
    named = {name: value for name, value in others.items() if value is not None}
    return Roles.from_dict({"bag": bag, **named})


def console(as_json: bool) -> Console:
    """Console for people; on standard error if standard output is JSON."""
    # No markup: brackets and colons are part of the names of columns and files.
    return Console(stderr=as_json, highlight=False, markup=False, emoji=False)


def answer(values: dict[str, Any], as_json: bool) -> None:
    """Write the answer as JSON, if requested."""
    if as_json:
        sys.stdout.write(json.dumps(values, indent=1, allow_nan=False) + "\n")
