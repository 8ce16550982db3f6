"""Does the missing runs of a table, several side by side, and saves each as it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unbag.parallel import get_executor
from unbag_paper.data import Labelled
from unbag_paper.league.grid import LeagueGrid
from unbag_paper.league.rows import league_rows, league_store
from unbag_paper.league.spec import RunSpec
from unbag_paper.league.training import Machine, OutOfTime, start_path, train_run
from unbag_paper.runs.provenance import device_name, provenance
from unbag_paper.runs.rows import Row

__all__ = ["LeagueRunner"]

# A run is begun only if this multiple of its estimated time is left.
_MARGIN = 1.2
Show = Callable[[str], None]


@dataclass(eq=False)
class LeagueRunner:
    """Trains what is missing of a table, `workers` runs at once.

    Parameters
    ----------
    grid : LeagueGrid
    folder : path
        Of rows.
    data : Labelled
    machine : Machine
        Its deadline is when everything must be saved.
    workers : int
        Processes that share the device, each with one run at a time.
    """

    grid: LeagueGrid
    folder: Path
    data: Labelled
    machine: Machine = field(default_factory=Machine)
    workers: int = 1

    def __post_init__(self) -> None:
        self.store = league_store(self.folder)  # it reads each part once

    def missing(self) -> list[RunSpec]:
        """Runs that are without a row."""
        return self.grid.missing(league_rows(self.store), self.data.fingerprint)

    def seconds(self, run: RunSpec) -> float:
        """Expected seconds of a run beside others, by the slowest like it on this device."""
        epoch = self._slowest_epoch(run) or self.grid.seconds_per_epoch * self.workers
        return (run.epochs + run.start_epochs) * epoch

    def _slowest_epoch(self, run: RunSpec) -> float | None:
        name = device_name(self.machine.device)
        alike = [
            row.outcome["seconds"] / (row.spec.epochs + row.spec.start_epochs)
            for row in league_rows(self.store)
            if (row.spec.net, row.spec.images_per_batch) == (run.net, run.images_per_batch)
            and (row.outcome.get("device"), row.outcome.get("workers")) == (name, self.workers)
        ]
        return max(alike, default=None)

    def plan(self) -> dict[str, Any]:
        """How much is missing, and how long it will take."""
        missing = self.missing()
        seconds = sum(map(self.seconds, missing)) / self.workers
        return {"to_run": len(missing), "minutes": round(seconds / 60, 1)}

    def run(self, show: Show = lambda text: None) -> str:
        """Train until nothing is left, or no run fits; say which."""
        while missing := self.missing():
            if not self._run_together(self._next(missing), show):
                return "out of time"
        return "finished"

    def _next(self, missing: list[RunSpec]) -> list[RunSpec]:
        """Runs for the workers: at first one each, to learn what a run takes, and then all.

        Of several that wait for the same start one goes ahead.
        """
        at_most = len(missing) if self._slowest_epoch(missing[0]) else self.workers
        found: list[RunSpec] = []
        begun: set[Path] = set()
        for run in missing:
            path = start_path(run, self.machine) if run.start_epochs else None
            if path is not None and not path.is_file():
                if path in begun:
                    continue
                begun.add(path)
            found.append(run)
        return found[:at_most]

    def _run_together(self, runs: list[RunSpec], show: Show) -> bool:
        """Train and save each run as it ends; False if one did not fit or was given up."""
        whole = True
        executor = get_executor(n_jobs=self.workers)
        timed = [(run, _MARGIN * self.seconds(run)) for run in runs]
        jobs = executor.finished(_train, timed, shared=(self.data, self.machine))
        for number, (arrays, outcome) in jobs:
            if arrays is None:
                whole = False
                continue
            row = Row(runs[number], outcome | {"workers": self.workers}, arrays)  # type: ignore[arg-type]
            self.store.add([row])
            show(_describe(runs[number], outcome, arrays))
        return whole


def _train(
    shared: tuple[Labelled, Machine], job: tuple[RunSpec, float]
) -> tuple[Any, dict[str, Any]]:
    """One run, wherever this is: what was measured, and how; nothing if time is short."""
    (data, machine), (run, expected) = shared, job
    begun = time.monotonic()
    if machine.deadline is not None and begun + expected > machine.deadline:
        return None, {}
    try:
        arrays = train_run(run, data, machine)
    except OutOfTime:
        return None, {}
    spent = round(time.monotonic() - begun, 2)
    return arrays, {"seconds": spent} | provenance(machine.device)


def _describe(run: RunSpec, outcome: dict[str, Any], arrays: dict[str, Any]) -> str:
    return (
        f"{run.method}, {run.bags} bags of {run.bag_size}, rate {run.learning_rate:g}, seed "
        f"{run.seed}: {100 * (1 - arrays['test_error'][-1]):.2f} % after {outcome['seconds']} s"
    )
