"""History of a stack, and each trial's best epoch and weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unbag.arrays import Array
from unbag.training.learners import Learner
from unbag.training.settings import Settings
from unbag.training.trial import Stopped, Trial, TrialResult


class Record:
    """History of a stack; with a criterion, also the best epoch and state of each trial.

    A trial that runs out of patience is frozen: its history ends and its best state is kept,
    although the stack continues. So its result is the same as alone.
    """

    def __init__(self, learner: Learner, settings: Settings) -> None:
        self.learner = learner
        self.criterion, self.patience = settings.criterion, settings.patience
        self.epochs: list[dict[str, Tensor]] = []
        self.interrupted = False
        device = learner.parameters[0].device
        self.best = torch.full((learner.n_models,), torch.inf, device=device)
        self.best_epoch = torch.zeros(learner.n_models, dtype=torch.long, device=device)
        self.last_epoch = torch.full_like(self.best_epoch, -1)
        self.running = torch.ones(learner.n_models, dtype=torch.bool, device=device)
        self.kept = {name: tensor.clone() for name, tensor in learner.state.items()}

    def add(self, values: dict[str, Tensor]) -> None:
        """Record one epoch."""
        if self.criterion is not None and self.criterion not in values:
            raise ValueError(
                f"criterion must name a monitor, one of {sorted(values)}, got {self.criterion!r}."
            )
        self.epochs.append({name: value.detach().clone() for name, value in values.items()})
        self.last_epoch[self.running] = len(self.epochs) - 1
        if self.criterion is not None:
            self._keep_best(values[self.criterion])

    def _keep_best(self, values: Tensor) -> None:
        epoch = len(self.epochs) - 1
        better = self.running & (values < self.best)
        self.best = torch.where(better, values, self.best)
        if epoch == 0:
            better = torch.ones_like(better)  # a first value that is NaN must not leave no state
        self.best_epoch[better] = epoch
        for name, current in self.learner.state.items():
            if self.learner.n_models > 1:
                self.kept[name][better] = current[better]
            elif better.item():
                self.kept[name] = current.clone()
        if self.patience is not None:
            self.running &= epoch - self.best_epoch < self.patience

    @property
    def finished(self) -> bool:
        """Whether every trial has run out of patience."""
        return self.patience is not None and not bool(self.running.any())

    def summary(self) -> str:
        """Text for the progress bar."""
        name = self.criterion or "loss"
        return f"{name.replace('_', ' ')} {float(self.epochs[-1][name].min()):.4f}"

    def results(self, trials: Sequence[Trial], input_shape: tuple[int, ...]) -> list[TrialResult]:
        """One result per trial."""
        last = self.criterion is None or not self.epochs
        state = self.learner.state if last else self.kept
        return [
            TrialResult(
                trial,
                self.learner.export(state, index),
                self._history(index),
                int((self.last_epoch if self.criterion is None else self.best_epoch)[index]),
                self._stopped(index),
                self.learner.n_models > 1,
                input_shape,
            )
            for index, trial in enumerate(trials)
        ]

    def _history(self, index: int) -> dict[str, Array]:
        epochs = self.epochs[: int(self.last_epoch[index]) + 1]
        if not epochs:
            return {"loss": np.empty(0, np.float32)}
        return {
            name: torch.stack([epoch[name][index] for epoch in epochs]).cpu().numpy()
            for name in epochs[0]
        }

    def _stopped(self, index: int) -> Stopped:
        if not bool(self.running[index]):
            return "patience"
        return "interrupted" if self.interrupted else "max_epochs"
