"""Does the missing runs of a table, several side by side, and saves each wave of them."""

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

# A wave is begun only if this multiple of its estimated time is left.
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

    def missing(self) -> list[RunSpec]:
        """Runs that are without a row."""
        return self.grid.missing(league_rows(self.folder), self.data.fingerprint)

    def seconds(self, run: RunSpec) -> float:
        """Expected seconds of a run beside others, by the slowest like it on this device."""
        name = device_name(self.machine.device)
        alike = [
            row.outcome["seconds"] / (row.spec.epochs + row.spec.start_epochs)
            for row in league_rows(self.folder)
            if row.spec.net == run.net
            and row.spec.images_per_batch == run.images_per_batch
            and row.outcome.get("device") == name
            and row.outcome.get("workers") == self.workers
        ]
        guess = self.grid.seconds_per_epoch * self.workers
        return (run.epochs + run.start_epochs) * max(alike, default=guess)

    def plan(self) -> dict[str, Any]:
        """How much is missing, and how long it will take."""
        missing = self.missing()
        seconds = sum(map(self.seconds, missing)) / self.workers
        return {"to_run": len(missing), "minutes": round(seconds / 60, 1)}

    def run(self, show: Show = lambda text: None) -> str:
        """Train until nothing is left, or no wave fits; say which."""
        while missing := self.missing():
            wave = self._wave(missing)
            if not self._fits(wave):
                return "out of time"
            if not self._run_wave(wave, show):
                return "out of time"
        return "finished"

    def _wave(self, missing: list[RunSpec]) -> list[RunSpec]:
        """The next runs; of several that wait for the same start one goes ahead."""
        wave: list[RunSpec] = []
        begun: set[Path] = set()
        for run in missing:
            path = start_path(run, self.machine) if run.start_epochs else None
            if path is not None and not path.is_file():
                if path in begun:
                    continue
                begun.add(path)
            wave.append(run)
            if len(wave) == self.workers:
                break
        return wave

    def _fits(self, wave: list[RunSpec]) -> bool:
        if self.machine.deadline is None:
            return True
        left = self.machine.deadline - time.monotonic()
        return _MARGIN * max(map(self.seconds, wave)) < left

    def _run_wave(self, wave: list[RunSpec], show: Show) -> bool:
        """Train a wave and save each run as it ends; False if one had to be given up."""
        whole = True
        executor = get_executor(n_jobs=self.workers)
        jobs = executor.finished(_train, wave, shared=(self.data, self.machine))
        for number, (arrays, outcome) in jobs:
            if arrays is None:
                whole = False
                continue
            row = Row(wave[number], outcome | {"workers": self.workers}, arrays)  # type: ignore[arg-type]
            league_store(self.folder).add([row])
            show(_describe(wave[number], outcome, arrays))
        return whole


def _train(shared: tuple[Labelled, Machine], run: RunSpec) -> tuple[Any, dict[str, Any]]:
    """One run, wherever this is: what was measured, and how it was computed."""
    data, machine = shared
    begun = time.monotonic()
    try:
        arrays = train_run(run, data, machine)
    except OutOfTime:
        return None, {}
    spent = round(time.monotonic() - begun, 2)
    how = {"seconds": spent, "settings": {"compile": machine.compile}}
    return arrays, how | provenance(machine.device)


def _describe(run: RunSpec, outcome: dict[str, Any], arrays: dict[str, Any]) -> str:
    return (
        f"{run.method}, {run.bags} bags of {run.bag_size}, rate {run.learning_rate:g}, seed "
        f"{run.seed}: {100 * (1 - arrays['test_error'][-1]):.2f} % after {outcome['seconds']} s"
    )
