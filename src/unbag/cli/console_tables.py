"""Tables that the commands print."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from unbag.evaluation.printing import TextTable

__all__ = [
    "show_candidates",
    "show_checks",
    "show_data",
    "show_fit",
    "show_importance",
    "show_metrics",
]

MOST_IMPORTANT = 8  # columns printed; the report has more


def show_data(data: dict[str, Any], console: Console) -> None:
    """Rows, bags, sizes and proportions, then how each column is used."""
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
    what = "average" if amounts else "proportion"
    for name, found in data["proportions"].items():
        console.print(
            f"{what} of {name}: {found['low']:.3g} to {found['high']:.3g}, mean {found['mean']:.3g}"
        )
    rows = [(column["name"], column["use"]) for column in data["columns"]]
    console.print(TextTable(f"{data['features']} features", ("column", "how it is used"), rows))
    for name in data["identifiers"]:
        console.print(
            f"! {name or 'A column without a name'} looks like an id and is left out. Declare it "
            "with --number or --category to learn from it, with --key to keep it beside the "
            "predictions."
        )


def show_checks(checks: dict[str, Any], console: Console) -> None:
    """The verdict, and the tests that failed."""
    console.print(f"Checks of {checks['n_bags']} bags: {checks['verdict']}")
    for finding in checks["findings"]:
        if finding["raised"]:
            console.print(f"  ! {finding['check']}: {finding['detail']}. {finding['advice']}")


def show_candidates(candidates: list[dict[str, Any]], console: Console) -> None:
    """Learners that were tried, and their weights in the model."""
    rows = []
    for candidate in candidates:
        risk = candidate["risk"]
        cells = ("", "") if risk is None else (risk["headline"], _ends(risk))
        rows.append((candidate["name"], f"{100 * candidate['weight']:.0f} %", *cells))
    columns = ("learner", "weight", "square risk", "95 % interval")
    console.print(TextTable("Tried on held-out bags", columns, rows))


def show_metrics(evaluation: dict[str, Any], console: Console) -> None:
    """Every metric with its interval, and a note where one leaves the metric's range."""
    title = f"From {evaluation['n_bags']} bags, without a label"
    interval = f"{100 * evaluation['confidence']:g} % interval"
    metrics = evaluation["metrics"].items()
    rows = [(name, found["headline"], _ends(found), found["note"]) for name, found in metrics]
    console.print(TextTable(title, ("metric", "estimate", interval, "note"), rows))


def show_importance(found: dict[str, Any] | None, console: Console) -> None:
    """The columns that the model needs most."""
    shown = found["columns"][:MOST_IMPORTANT] if found else []
    rows = [(c["name"], f"{c['value']:.4f}", _ends(c)) for c in shown]
    if found and rows:
        columns = ("column", found["measure"], "95 % interval")
        console.print(TextTable("What drives it", columns, rows))


def _ends(found: dict[str, Any]) -> str:
    ends = [found[n] for n in ("low", "high")]
    return "" if None in ends else " to ".join(f"{end:.4f}" for end in ends)


def show_fit(record: dict[str, Any], curve: Any, console: Console) -> None:
    """Checks, candidates, metrics, importances, a learning curve if there is one, the headline."""
    if record["checks"]:
        show_checks(record["checks"], console)
    show_candidates(record["candidates"], console)
    show_metrics(record["evaluation"], console)
    show_importance(record["importance"], console)
    if curve is not None:
        console.print(curve)
    console.print(f"On single rows: {record['headline']}")
    if record["caution"]:
        console.print(f"! {record['caution']}")
