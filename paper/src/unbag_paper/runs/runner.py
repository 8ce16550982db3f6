"""Runs the missing trials of some grids: plans, stacks, trains, and saves each finished stack."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapreplace
from typing import Any

import torch

from unbag.parallel import Executor
from unbag_paper.data import Labelled
from unbag_paper.runs.grid import Grid
from unbag_paper.runs.protocol import Protocol, missing_trials
from unbag_paper.runs.provenance import device_name, provenance
from unbag_paper.runs.rows import Row, Store
from unbag_paper.runs.time_estimates import TimeEstimates, Workload
from unbag_paper.runs.trainer import Arrays, Trainer
from unbag_paper.runs.trial_spec import TrialSpec

__all__ = ["RunPlan", "Runner", "Tick"]

Tick = Callable[[float, str], None]
"""Called with the estimated seconds of work just finished, and after a stack a few words."""

Found = dict[TrialSpec, Arrays]
Origin = Mapping[str, Any]

# A stack is begun only if this multiple of its estimated time is left.
_MARGIN = 1.25


@dataclass(frozen=True)
class RunPlan:
    """What a run will do, as far as it is known before the first trial."""

    n_done: int
    trials: list[TrialSpec]
    seconds: float


@dataclass(eq=False)
class Runner:
    """Trains the missing trials of some grids, stack by stack.

    Parameters
    ----------
    grids : list of Grid
    store : Store
    data : mapping from str to Labelled
        The data sets the grids name.
    device : str
    protocol : {"paper", "lean"}
    label_free : bool
        Whether `lean` also confirms the learning rate chosen without labels.
    deadline : float, optional
        Value of `time.monotonic()` by which everything must be saved.
    settings : mapping
        Further arguments of `EngineSettings`.
    executor : Executor, optional
        Where stacks are trained, as many as fit before the deadline at once; None trains them
        here, in turn.
    """

    grids: list[Grid]
    store: Store
    data: Mapping[str, Labelled]
    device: str = "cpu"
    protocol: Protocol = "lean"
    label_free: bool = True
    deadline: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    executor: Executor | None = None

    def __post_init__(self) -> None:
        sizes = {
            name: Workload(len(d.y_train), int(d.X_train[0].size)) for name, d in self.data.items()
        }
        self.costs = TimeEstimates(self.device, device_name(self.device), sizes)
        self.costs.learn(self.store.rows())
        self._trainer = Trainer(self.data, device=self.device, settings=self.settings)

    def missing(self) -> list[TrialSpec]:
        """Trials that are without a row."""
        return missing_trials(
            self.grids,
            self.store.rows(),
            data={name: data.fingerprint for name, data in self.data.items()},
            protocol=self.protocol,
            label_free=self.label_free,
        )

    def plan(self) -> RunPlan:
        """What is done, what is missing, and how long it will take."""
        missing = self.missing()
        cells = [cell for grid in self.grids for cell in grid.cells()]
        asked = {(cell.spec.cell, seed) for cell in cells for seed in cell.seeds}
        n_done = sum(
            (row.spec.cell, row.spec.seed) in asked and self._is_ours(row.spec)
            for row in self.store.rows()
        )
        stacks = self._stacks(missing)
        return RunPlan(n_done, missing, sum(self.costs.stack(stack) for stack in stacks))

    def _is_ours(self, trial: TrialSpec) -> bool:
        """Whether a trial saw the data at hand, and not other files of the same name."""
        return trial.dataset in self.data and trial.data == self.data[trial.dataset].fingerprint

    def run(self, tick: Tick | None = None) -> str:
        """Train until nothing is left.

        Returns
        -------
        str
            Why it ended: "finished", "out of time" or "interrupted".
        """
        report = tick or (lambda seconds, text: None)
        while missing := self.missing():
            if self.executor is not None:
                if not self._run_elsewhere(missing, report):
                    return "out of time"
                continue
            stack = self._next_stack(missing)
            if not stack:
                return "out of time"
            if not self._run_stack(stack, report):
                return "interrupted"
        return "finished"

    def _stacks(self, trials: Iterable[TrialSpec]) -> list[list[TrialSpec]]:
        """Trials that can be trained at once, at most as many as the grids allow.

        Those of one seed see the same batches, which are then read once. On a CPU, where reading
        counts, they are trained by themselves.
        """
        together: dict[tuple[TrialSpec, int], list[TrialSpec]] = {}
        for trial in trials:
            own_batches = self.device == "cpu" and trial.conditions == "ours"
            seed = trial.seed if own_batches else 0
            together.setdefault((trial.stack, seed), []).append(trial)
        stacks = []
        for alike in together.values():
            size = self._stack_size(alike[0])
            stacks += [alike[start : start + size] for start in range(0, len(alike), size)]
        return stacks

    def _stack_size(self, trial: TrialSpec) -> int:
        alike = [
            grid
            for grid in self.grids
            if trial.dataset in grid.datasets
            and grid.full_batch == (trial.bags_per_batch == 0)
            and grid.measures == trial.measures
        ]
        return max((grid.stack_size(trial.model, self.device) for grid in alike), default=1)

    def _next_stack(self, missing: list[TrialSpec]) -> list[TrialSpec]:
        """The first stack of which something can be finished in time; empty if there is none."""
        fitting = (self._cut_to_time(stack) for stack in self._stacks(missing))
        return next((stack for stack in fitting if stack), [])

    def _cut_to_time(self, stack: list[TrialSpec], *, wait: float = 0.0) -> list[TrialSpec]:
        """As much of a stack as can be finished before the deadline, begun after a wait."""
        if self.deadline is None:
            return stack
        left = self.deadline - time.monotonic() - wait
        while stack and _MARGIN * self.costs.stack(stack) > left:
            stack = stack[: len(stack) // 2]
        return stack

    def _run_stack(self, stack: list[TrialSpec], tick: Tick) -> bool:
        """Train and save a stack; False if the user interrupted it."""
        share = _Share(self.costs.stack(stack), max(1, stack[0].epochs), tick)
        begun = time.monotonic()
        try:
            found = self._trainer(stack, share.advance)
        except torch.cuda.OutOfMemoryError:
            if len(stack) == 1:
                raise
            found = None
        if found is None:  # not inside `except`, where the error still holds on to the tensors
            return self._run_in_halves(stack, tick)
        spent = time.monotonic() - begun
        return self._save(stack, found, spent, share, provenance(self.device))

    def _run_elsewhere(self, missing: list[TrialSpec], tick: Tick) -> bool:
        """Train by the executor what can be finished in time, and save it; False if nothing can."""
        assert self.executor is not None
        stacks = self._stacks_in_time(missing, self.executor.n_workers)
        shared = (self.data, self.device, dict(self.settings))
        for number, (found, spent, origin) in self.executor.finished(_train, stacks, shared=shared):
            share = _Share(self.costs.stack(stacks[number]), 1, tick)
            self._save(stacks[number], found, spent, share, origin)
            if self.deadline is not None and time.monotonic() > self.deadline:
                break
        return bool(stacks)

    def _stacks_in_time(self, missing: list[TrialSpec], n_workers: int) -> list[list[TrialSpec]]:
        """What so many workers can finish before the deadline."""
        stacks = []
        busy = [0.0] * n_workers  # seconds of work each has, the least first
        for stack in self._stacks(missing):
            if fitting := self._cut_to_time(stack, wait=busy[0]):
                stacks.append(fitting)
                heapreplace(busy, busy[0] + _MARGIN * self.costs.stack(fitting))
        return stacks

    def _save(
        self, stack: list[TrialSpec], found: Found, spent: float, share: _Share, origin: Origin
    ) -> bool:
        """Save what was found of a stack; False if that is not all of it."""
        seconds = spent / len(stack)
        rows = [self._row(*pair, seconds, stack, origin) for pair in found.items()]
        self.store.add(rows)
        self.costs.learn(rows)
        share.finish(_describe(stack, seconds))
        return len(rows) == len(stack)

    def _run_in_halves(self, stack: list[TrialSpec], tick: Tick) -> bool:
        gc.collect()
        torch.cuda.empty_cache()
        half = len(stack) // 2
        return all(self._run_stack(part, tick) for part in (stack[:half], stack[half:]))

    def _row(
        self,
        spec: TrialSpec,
        arrays: Arrays,
        seconds: float,
        stack: list[TrialSpec],
        origin: Origin,
    ) -> Row:
        outcome = {
            "seconds": round(seconds, 4),
            "stack": len(stack),
            "settings": dict(self.settings),
            **origin,
        }
        return Row(spec, outcome, arrays)


def _train(
    shared: tuple[Mapping[str, Labelled], str, dict[str, Any]], stack: list[TrialSpec]
) -> tuple[Found, float, Origin]:
    """Train one stack, wherever this is; what came out, in how many seconds, and on what."""
    data, device, settings = shared
    begun = time.monotonic()
    found = Trainer(data, device=device, settings=settings)(stack)
    return found, time.monotonic() - begun, provenance(device)


class _Share:
    """A stack's part of the progress bar, moved epoch by epoch and never too far."""

    def __init__(self, seconds: float, n_epochs: int, tick: Tick) -> None:
        self.left, self.step, self.tick = seconds, seconds / n_epochs, tick

    def advance(self) -> None:
        step = min(self.step, self.left)
        self.left -= step
        self.tick(step, "")

    def finish(self, text: str) -> None:
        self.tick(self.left, text)


def _describe(stack: list[TrialSpec], seconds: float) -> str:
    first = stack[0]
    return (
        f"{first.dataset} {first.model}, bags of {first.bag_size}: {len(stack)} trials, "
        f"{seconds:.2f} s each"
    )
