"""All experiments in order: rows, figures, and the table of claims."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bar

from unbag.errors import ConditionError
from unbag_paper.claims.coordinates import (
    agnostic_coordinates,
    realizable_coordinates,
    two_constants,
)
from unbag_paper.claims.eprm import eprm_blindness, eprm_rate
from unbag_paper.claims.estimation import estimation_and_learning, precision
from unbag_paper.claims.facts import certificates, facts
from unbag_paper.claims.figure_style import save_figure
from unbag_paper.claims.optimistic_rates import optimistic_rates
from unbag_paper.claims.proof_steps import proof_steps
from unbag_paper.claims.proportion_matching import proportion_failure
from unbag_paper.claims.results import Claim, ExperimentResult, Options, Progress

__all__ = ["EXPERIMENTS", "claims_markdown", "load_options", "reproduce_theory"]

EXPERIMENTS: dict[str, Callable[[Options, Progress], ExperimentResult]] = {
    "eprm_rate": eprm_rate,
    "eprm_blindness": eprm_blindness,
    "proportion_failure": proportion_failure,
    "optimistic_rates": optimistic_rates,
    "estimation_and_learning": estimation_and_learning,
    "realizable_coordinates": realizable_coordinates,
    "agnostic_coordinates": agnostic_coordinates,
    "two_constants": two_constants,
    "facts": facts,
    "proof_steps": proof_steps,
    "precision": precision,
    "certificates": certificates,
}


def load_options(*, quick: bool = False, seed: int | None = None) -> dict[str, Options]:
    """Read the declared grid of every experiment; `seed` replaces the declared one.

    Examples
    --------
    >>> sorted(load_options(quick=True)) == sorted(EXPERIMENTS)
    True
    """
    path = Path(__file__).with_name("quick.toml" if quick else "full.toml")
    declared = tomllib.loads(path.read_text(encoding="utf-8"))
    declared_seed = declared.pop("seed")
    chosen = declared_seed if seed is None else seed
    return {name: {**grid, "seed": chosen} for name, grid in declared.items()}


def reproduce_theory(
    out: str | Path,
    *,
    quick: bool = False,
    only: Iterable[str] | None = None,
    seed: int | None = None,
    console: Console | None = None,
) -> list[Claim]:
    """Check every claim of the paper by simulation; write rows, figures and the table of claims.

    Parameters
    ----------
    out : path
        Folder for ``claims.md``, ``claims.json``, one CSV and one figure (PNG, SVG) an experiment.
    quick : bool
        The small grid, under a minute.
    only : iterable of str, optional
        Names out of :data:`EXPERIMENTS`; all by default. The table keeps what `out` already holds
        of the other experiments, if it came from the same grid and seed.
    seed : int, optional
        Another seed than the declared one.
    console : rich.console.Console, optional
        Where progress is shown; nowhere by default.

    Returns
    -------
    list of Claim
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    grids = load_options(quick=quick, seed=seed)
    names = _chosen(only)
    shown = console or Console(quiet=True)
    outcomes = []
    with Bar(console=shown, transient=True) as bar:
        for name in names:
            outcomes.append(_run_one(name, grids[name], bar))
            _write_outcome(outcomes[-1], folder)
    claims = [claim for outcome in outcomes for claim in outcome.claims]
    _write_claims(outcomes, grids, folder, quick)
    return claims


def _chosen(only: Iterable[str] | None) -> list[str]:
    names = list(EXPERIMENTS) if only is None else list(only)
    unknown = sorted(set(names) - set(EXPERIMENTS))
    if unknown:
        raise ConditionError(f"Unknown experiments {unknown}; there are {list(EXPERIMENTS)}.")
    return names


def _run_one(name: str, grid: Options, bar: Bar) -> ExperimentResult:
    task = bar.add_task(name, total=None)
    outcome = EXPERIMENTS[name](grid, lambda: bar.advance(task))
    bar.remove_task(task)
    return outcome


def _write_outcome(outcome: ExperimentResult, folder: Path) -> None:
    with (folder / f"{outcome.name}.csv").open("w", newline="", encoding="utf-8") as file:
        fields = list(dict.fromkeys(field for row in outcome.rows for field in row))
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _short(value) for key, value in row.items()} for row in outcome.rows)
    if outcome.figure is not None:
        save_figure(outcome.figure, folder / outcome.name)


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _write_claims(
    outcomes: list[ExperimentResult], grids: dict[str, Options], folder: Path, quick: bool
) -> None:
    """Write the table; claims of experiments not run now are kept from the same grid and seed."""
    head = {"grid": "quick" if quick else "full", "seed": next(iter(grids.values()))["seed"]}
    kept = _earlier_claims(folder / "claims.json", head)
    kept |= {outcome.name: [vars(claim) for claim in outcome.claims] for outcome in outcomes}
    listed = [{"experiment": name, **claim} for name in EXPERIMENTS for claim in kept.get(name, [])]
    text = json.dumps({**head, "claims": listed}, indent=1, ensure_ascii=False)
    (folder / "claims.json").write_text(text + "\n", encoding="utf-8")
    claims = [Claim(**claim) for name in EXPERIMENTS for claim in kept.get(name, [])]
    (folder / "claims.md").write_text(claims_markdown(claims) + "\n", encoding="utf-8")


def _earlier_claims(path: Path, head: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    if not path.exists():
        return {}
    record = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, list[dict[str, Any]]] = {}
    if {key: record.get(key) for key in head} == head:
        for claim in record["claims"]:
            found.setdefault(claim.pop("experiment"), []).append(claim)
    return found


def claims_markdown(claims: list[Claim]) -> str:
    """The final table, with the notes below it.

    Examples
    --------
    >>> print(claims_markdown([Claim("one is one", "everywhere", "1", "1", True)]))
    | claim | where in the paper | measured | the paper says | verdict |
    |---|---|---|---|---|
    | one is one | everywhere | 1 | 1 | pass |
    """
    lines = ["| claim | where in the paper | measured | the paper says | verdict |"]
    lines.append("|---|---|---|---|---|")
    notes: list[str] = []
    for claim in claims:
        verdict = claim.verdict
        if claim.note:
            notes.append(claim.note)
            verdict += f" ({len(notes)})"
        cells = (claim.claim, claim.where, claim.measured, claim.expected, verdict)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    numbered = [f"{number}. {note}" for number, note in enumerate(notes, start=1)]
    return "\n".join([*lines, *([""] if notes else []), *numbered])
