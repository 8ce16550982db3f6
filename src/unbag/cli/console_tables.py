"""Tables printed by the commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from rich.console import Console

from unbag.evaluation.printing import TextTable, readable
from unbag.tables.fit import CandidateModel, TableFit

MOST_IMPORTANT = 8  # columns printed; the report has more


def show_data(data: dict[str, Any], console: Console) -> None:
    """Rows, bags, sizes and proportions, and the use of each column."""
    sizes, amounts = data["sizes"], data["task"] == "amount"
    size = f"{sizes['low']:.0f}"
    if sizes["low"] < sizes["high"]:
        size += f" to {sizes['high']:.0f} rows (median {sizes['median']:g})"
    else:
        size += " rows each"
    console.print(
        f"{data['rows']:,} rows in {data['bags']:,} bags of {size}; "
        + ("amounts" if amounts else f"{data['task']} labels")
    )
    what, form = ("average", readable) if amounts else ("proportion", "{:.3g}".format)
    for name, found in data["proportions"].items():
        low, high, mean = (form(found[key]) for key in ("low", "high", "mean"))
        console.print(f"{what} of {name}: {low} to {high}, mean {mean}")
    rows = [(column["name"], column["use"]) for column in data["columns"]]
    console.print(TextTable(f"{data['features']} features", ("column", "how it is used"), rows))
    for name in data["identifiers"]:
        console.print(
            f"! {name or 'A column without a name'} looks like an id and is left out. Declare it "
            "with --number or --category to learn from it, with --key to keep it beside the "
            "predictions."
        )


def show_fit(fit: TableFit, caution: str, console: Console) -> None:
    """Failed checks, candidates, column importance, learning curve and evaluation."""
    console.print(f"Checks of {fit.checks.n_bags} bags: {fit.checks.verdict}")
    for finding in fit.checks.raised:
        console.print(f"  ! {finding.check}: {finding.detail}. {finding.advice}")
    show_candidates(fit.candidates, console)
    if fit.importance is not None:
        most = dict(islice(fit.importance.estimates.items(), MOST_IMPORTANT))
        left_out = len(fit.importance.estimates) - len(most)
        note = f" ({left_out} less important columns are in the report)" if left_out else ""
        console.print(f"Column importance{note}:", replace(fit.importance, estimates=most))
    if fit.curve is not None:
        console.print(fit.curve)
    console.print(fit.evaluation)
    if caution:
        console.print(f"! {caution}")


def show_candidates(candidates: Sequence[CandidateModel], console: Console) -> None:
    """Learners with their weights and risks."""
    rows = []
    for tried in candidates:
        cells = ("", "") if tried.risk is None else (tried.risk.headline, tried.risk.interval)
        rows.append((tried.name, f"{100 * tried.weight:.0f} %", *cells))
    columns = ("learner", "weight", "square risk", "95 % interval")
    console.print(TextTable("Tried on held-out bags", columns, rows))
