"""``unbag-paper theory``: every claim of the paper, checked by simulation."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from unbag.cli import options as opt
from unbag.errors import ConditionError

if TYPE_CHECKING:
    from unbag_paper.claims.results import Claim

__all__ = ["theory"]


def theory(
    out: Annotated[Path, typer.Option(help="Folder for the table, rows and figures.")] = Path(
        "paper/results/theory"
    ),
    quick: Annotated[bool, typer.Option(help="Run a small grid in under a minute.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Run this experiment only.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed, if not the declared one.")] = None,
    as_json: opt.Json = False,
) -> None:
    """Check every claim of the paper, and print a table of claims, measurements and verdicts.

    The exit status is 1 when a claim fails, those known to be false as stated apart.

    Examples:

      unbag-paper theory --quick

      unbag-paper theory --only eprm_blindness --out claims/ --json
    """
    # Imported here because it brings matplotlib, which the other commands do not need.
    from unbag_paper.claims import reproduce_theory

    console = opt.console(as_json)
    try:
        claims = reproduce_theory(out, quick=quick, only=only or None, seed=seed, console=console)
    except ConditionError as refusal:
        raise typer.BadParameter(str(refusal)) from None
    table = Table("claim", "where", "measured", "the paper says", "verdict", show_lines=True)
    for claim in claims:
        colour = "green" if claim.expected_outcome else "red"
        verdict = Text(claim.verdict, style=colour)
        table.add_row(claim.claim, claim.where, claim.measured, claim.expected, verdict)
    console.print(table)
    console.print(f"{_summary(claims)} Rows and figures are in {out}.", soft_wrap=True)
    record = [asdict(claim) | {"verdict": claim.verdict} for claim in claims]
    opt.answer({"output": str(out), "claims": record}, as_json)
    if not all(claim.expected_outcome for claim in claims):
        raise typer.Exit(1)


def _summary(claims: list[Claim]) -> str:
    passed = sum(claim.passed for claim in claims)
    refuted = sum(claim.refuted and not claim.passed for claim in claims)
    failed = len(claims) - passed - refuted
    return f"{passed} of {len(claims)} claims hold, {refuted} fail as stated, {failed} fail."
