"""Computes a stack of trials: trained by the engine, or solved in closed form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from unbag.bags import Bags, make_bags
from unbag.errors import TrainingError
from unbag.training import Trial, TrialResult
from unbag.training.batches import as_inputs
from unbag_paper.compiled import EngineSettings, train
from unbag_paper.compiled.monitors import Monitor
from unbag_paper.data import Labelled
from unbag_paper.runs.label_free_error import ERROR_FROM_BAGS, error_from_bags, hard_predictions
from unbag_paper.runs.monitors import error_monitors, logits_on
from unbag_paper.runs.paper_conditions import as_the_paper_sees, bags_in_order
from unbag_paper.runs.ridge_path import ridge_path
from unbag_paper.runs.rows import Array
from unbag_paper.runs.square_loss_estimates import SNAPSHOT_EPOCH, TestBags
from unbag_paper.runs.trial_spec import RIDGE, TrialSpec, teachers_of

__all__ = ["Trainer"]

Arrays = dict[str, Array]


class Trainer:
    """Turns the specs of a stack into arrays; keeps data on the device, and what teachers said.

    Parameters
    ----------
    data : mapping from str to Labelled
    device : str
    settings : mapping
        Further arguments of `EngineSettings`.
    """

    def __init__(
        self, data: Mapping[str, Labelled], *, device: str, settings: Mapping[str, Any]
    ) -> None:
        self.data, self.device, self.settings = data, device, settings
        self._exact: dict[str, Labelled] = {}  # by data set
        self._inputs: dict[tuple[str, str, str], torch.Tensor] = {}
        self._kept_monitors: dict[tuple[str, str, int, str], list[Monitor]] = {}
        self._taught_bags: dict[TrialSpec, Bags] = {}  # by teacher

    def __call__(
        self, stack: list[TrialSpec], on_epoch: Callable[[], None] = lambda: None
    ) -> dict[TrialSpec, Arrays]:
        """Compute the trials of a stack; fewer come back if the user interrupts.

        `on_epoch` is called after each epoch of the stack.
        """
        if stack[0].rule == RIDGE:
            return {spec: self._solve(spec) for spec in stack}
        if not self._ask_teachers(stack, on_epoch):
            return {}
        monitors = _announced(self._monitors(stack[0]), on_epoch)
        results = self._train(stack, monitors, epochs=stack[0].epochs)
        found = {spec: dict(result.history) for spec, result in results.items()}
        if stack[0].measures == "estimates":
            shots = self._snapshots(stack)
            return {spec: found[spec] | shots[spec] for spec in found if spec in shots}
        for spec, result in results.items():
            found[spec][ERROR_FROM_BAGS] = self._error_from_bags(spec, result)
        return found

    def _train(
        self, stack: list[TrialSpec], monitors: list[Monitor], *, epochs: int
    ) -> dict[TrialSpec, TrialResult]:
        first = stack[0]
        bags = [self._bags(spec) for spec in stack]
        settings = EngineSettings(
            max_epochs=epochs,
            bags_per_batch=first.bags_per_batch or bags[0].n_bags,
            shuffle=first.redraw or first.conditions == "ours",
            redraw=first.redraw,
            schedule=first.schedule,
            device=self.device,
            **self.settings,
        )
        trials = {Trial(s.make_rule(), s.learning_rate or 0.0, s.seed): s for s in stack}
        results = train(list(trials), bags, model=first.model, monitors=monitors, settings=settings)
        return {trials[r.trial]: r for r in results if not r.interrupted}

    def _ask_teachers(self, stack: list[TrialSpec], on_epoch: Callable[[], None]) -> bool:
        """Train the teachers that were not asked yet; False if the user interrupted that."""
        new = [teacher for teacher in teachers_of(stack) if teacher not in self._taught_bags]
        if not new:
            return True
        monitors = _announced(self._monitors(new[0])[:1], on_epoch)
        results = self._train(new, monitors, epochs=new[0].epochs)
        for teacher, result in results.items():
            X = self._on_device(teacher, "train")
            logits = logits_on(result.model, X)
            _check_finite(logits, teacher)
            self._taught_bags[teacher] = _bags_of_one(X, logits)
        return len(results) == len(new)

    def _error_from_bags(self, spec: TrialSpec, result: TrialResult) -> Array:
        """The trained net's error as bags of test instances show it, beside the truth."""
        predicted = hard_predictions(result.model, self._on_device(spec, "test"))
        data = self._data(spec)
        return error_from_bags(predicted, data, bag_size=spec.bag_size, seed=int(spec.key[:8], 16))

    def _snapshots(self, stack: list[TrialSpec]) -> dict[TrialSpec, Arrays]:
        """Per-bag losses after ten epochs: the same trials once more, stopped there."""
        first = stack[0]
        bags = TestBags(self._data(first), bag_size=first.bag_size, device=self.device)
        results = self._train(stack, [], epochs=min(SNAPSHOT_EPOCH, first.epochs))
        return {spec: bags.snapshot(result.model) for spec, result in results.items()}

    def _solve(self, spec: TrialSpec) -> Arrays:
        """The ridge classifier at every penalty, and last at the one it chose itself."""
        monitors = self._monitors(spec)
        X_test = _flat(monitors[0].X.cpu().numpy())
        scores, penalties = ridge_path(_flat(self._data(spec).X_train), self._bags(spec), X_test)
        logits = torch.from_numpy(scores).float().logit(eps=1e-6).to(self.device).unsqueeze(-1)
        found = {monitor.name: monitor.measure(logits).cpu().numpy() for monitor in monitors}
        return found | {"penalty": penalties}

    def _bags(self, spec: TrialSpec) -> Bags:
        """The trial's bags; all trials share one copy of the instances, on the device."""
        if spec.taught_by is not None:
            return self._taught_bags[spec.taught_by]
        X, y = self._on_device(spec, "train"), self._data(spec).y_train
        if spec.conditions == "exact":
            return bags_in_order(X, y, bag_size=spec.bag_size)
        return make_bags(X, y, bag_size=spec.bag_size, seed=spec.seed)

    def _data(self, spec: TrialSpec) -> Labelled:
        """The trial's problem, as its conditions have it."""
        if spec.conditions == "ours":
            return self.data[spec.dataset]
        if spec.dataset not in self._exact:
            self._exact[spec.dataset] = as_the_paper_sees(self.data[spec.dataset])
        return self._exact[spec.dataset]

    def _on_device(self, spec: TrialSpec, part: Literal["train", "test"]) -> torch.Tensor:
        key = (spec.dataset, spec.conditions, part)
        if key not in self._inputs:
            data = self._data(spec)
            X = data.X_train if part == "train" else data.X_test
            self._inputs[key] = torch.from_numpy(X).to(self.device)
        return self._inputs[key]

    def _monitors(self, spec: TrialSpec) -> list[Monitor]:
        key = (spec.dataset, spec.conditions, spec.bag_size, spec.measures)
        if key not in self._kept_monitors:
            options: dict[str, Any] = {"bag_size": spec.bag_size, "device": self.device}
            data = self._data(spec)
            self._kept_monitors[key] = (
                TestBags(data, **options).monitors()
                if spec.measures == "estimates"
                else error_monitors(data, **options)
            )
        return self._kept_monitors[key]


def _announced(monitors: list[Monitor], on_epoch: Callable[[], None]) -> list[Monitor]:
    """The same monitors, of which the first says when it is asked."""
    first, *others = monitors

    def measure(logits: torch.Tensor) -> torch.Tensor:
        on_epoch()
        return first.measure(logits)

    return [replace(first, measure=measure), *others]


def _check_finite(logits: torch.Tensor, teacher: TrialSpec) -> None:
    if not logits.isfinite().all():
        raise TrainingError(
            f"The {teacher.model} of seed {teacher.seed} that was to teach others ended in numbers "
            "that are not finite. What is finished is kept: try again with --resume, or name the "
            "rules without a teacher with --rules."
        )


def _bags_of_one(X: torch.Tensor, logits: torch.Tensor) -> Bags:
    """Each instance by itself, its proportion the probability that a net gives it."""
    rows = np.arange(len(X))
    proportions = logits.squeeze(-1).sigmoid().cpu().numpy()
    return Bags(X, rows, np.ones_like(rows), proportions, list(rows))


def _flat(images: Array) -> Array:
    return as_inputs(torch.from_numpy(images)).flatten(1).numpy()
