"""A stack: trials trained together, with their step, optimizer, batches and history."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from unbag.arrays import Array
from unbag.bags import Bags, Task
from unbag.models import ModelBuilder, Moments, Standardize, join_moments, moments_of
from unbag.randomness import derive_seed
from unbag.rules import Rule
from unbag.training.adam import StackedAdam
from unbag.training.batches import Batch, TrialData, as_inputs, make_batch
from unbag.training.learners import Learner, learner_of
from unbag.training.settings import Settings
from unbag.training.trial import Trial, TrialResult


class Step:
    """Trains every trial of a stack on one batch and accumulates their losses."""

    def __init__(
        self,
        learner: Learner,
        optimizer: StackedAdam,
        trials: Sequence[Trial],
        X: Tensor,
        prior: Tensor,
        *,
        task: Task,
    ) -> None:
        self.learner, self.optimizer, self.X, self.prior = learner, optimizer, X, prior
        self.task: Task = task
        # Trials come sorted by rule, so those of one rule are a slice.
        self.runs: list[tuple[Rule, slice]] = []
        for rule, group in groupby(trials, key=lambda trial: trial.rule):
            start = self.runs[-1][1].stop if self.runs else 0
            self.runs.append((rule, slice(start, start + len(list(group)))))
        self.calls = [rule.step for rule, _ in self.runs]
        n_outputs = 1 if prior.ndim == 1 else prior.shape[1]
        # One state for all runs of trials, of which each reads and writes its own slice.
        self.state = torch.full((len(trials), 1, n_outputs), torch.nan, device=X.device)
        self.loss_sum = torch.zeros(len(trials), device=X.device)

    def __call__(self, batch: Batch) -> None:
        """Train on one batch."""
        # `X[rows]`, several times as fast on a CPU
        x = self.X.index_select(0, batch.rows.flatten()).unflatten(0, batch.rows.shape)
        shared = len(x) == 1
        logits = self.learner.logits(as_inputs(x[0] if shared else x), shared=shared)
        losses = self.losses(logits.float(), batch)
        gradients = torch.autograd.grad(losses.sum(), self.learner.parameters)
        self.optimizer.step(gradients)
        self.learner.advance()
        self.loss_sum += losses.detach()

    def losses(self, logits: Tensor, batch: Batch) -> Tensor:
        """Loss of every trial by its own rule."""
        if self.task in ("binary", "amount"):
            logits = logits.squeeze(-1)
        parts = []
        for (_, trials), call in zip(self.runs, self.calls, strict=True):
            state = self.state[trials]
            bags = batch.bags(trials, self.prior, self.task)
            loss, new_state = call(logits[trials], bags, state)
            if new_state is not state and new_state is not None:
                state.copy_(new_state)
            parts.append(loss)
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class Stack:
    """Trials of one layout: their models, optimizer, batches and history."""

    step_kind: ClassVar[type[Step]] = Step

    def __init__(
        self,
        trials: Sequence[Trial],
        data: Sequence[TrialData],
        X: Tensor,
        build: ModelBuilder,
        settings: Settings,
        *,
        start: Sequence[nn.Module] | None = None,
    ) -> None:
        self.trials, self.data, self.settings, self.device = trials, data, settings, X.device
        self.input_shape = tuple(X.shape[1:])
        if start is None:
            pairs = zip(trials, data, strict=True)
            models = [self._model(build, trial, own.bags, X) for trial, own in pairs]
        else:
            models = [copy.deepcopy(net).to(X.device) for net in start]
        self.batches = self._cut(data)
        self.learner = self._learner(models)
        rates = torch.tensor([t.learning_rate for t in trials], device=X.device)
        self.optimizer = StackedAdam(self.learner.parameters, rates, stacked=len(trials) > 1)
        prior = torch.tensor(
            np.array([d.prior for d in data]), dtype=torch.float32, device=X.device
        )
        self.step = self._step(X, prior)
        self.epochs: list[dict[str, Tensor]] = []
        self.interrupted = False

    def _model(self, build: ModelBuilder, trial: Trial, bags: Bags, X: Tensor) -> nn.Module:
        moments = partial(instance_moments, X, bags.rows)
        return seeded_model(build, trial, self.input_shape, bags.n_outputs, moments).to(X.device)

    def _cut(self, data: Sequence[TrialData]) -> list[Batch]:
        pairs = ([(d.bags, d.batches[n]) for d in data] for n in range(len(data[0].batches)))
        return [make_batch(parts, self.device) for parts in pairs]

    def _learner(self, models: list[nn.Module]) -> Learner:
        return learner_of(models)

    def _step(self, X: Tensor, prior: Tensor) -> Step:
        parts = self.learner, self.optimizer, self.trials, X, prior
        return self.step_kind(*parts, task=self.data[0].bags.task)

    def _measure(self) -> dict[str, Tensor]:
        """Values of each trial to record beside the loss."""
        return {}

    def run_epoch(self, epoch: int) -> None:
        """Train on every batch once, then measure."""
        self.begin(epoch)
        for batch in self.batches:
            self.step(batch)
        self.end()

    def begin(self, epoch: int) -> None:
        """Set the learning rate, redraw batches if requested, and reset the loss."""
        self.optimizer.scale_rates(self.settings.rate_factor(epoch))
        if self.settings.redraw and epoch > 0:
            self.batches = self._cut([d.redrawn(epoch) for d in self.data])
        self.learner.train(True)
        self.step.loss_sum.zero_()

    def end(self) -> None:
        """Measure and record the epoch."""
        self.learner.train(False)
        values = {"loss": self.step.loss_sum / len(self.batches)} | self._measure()
        self.epochs.append({name: value.detach().clone() for name, value in values.items()})

    def summary(self) -> str:
        """Text for the progress bar."""
        return f"loss {float(self.epochs[-1]['loss'].min()):.4f}"

    def results(self) -> list[TrialResult]:
        """Current result of each trial."""
        state, stacked = self.learner.state, self.learner.n_models > 1
        return [
            TrialResult(
                trial,
                self.learner.export(state, index),
                self._history(index),
                self.interrupted,
                stacked,
                self.input_shape,
            )
            for index, trial in enumerate(self.trials)
        ]

    def _history(self, index: int) -> dict[str, Array]:
        if not self.epochs:
            return {"loss": np.empty(0, np.float32)}
        return {
            name: torch.stack([epoch[name][index] for epoch in self.epochs]).cpu().numpy()
            for name in self.epochs[0]
        }


def seeded_model(
    build: ModelBuilder,
    trial: Trial,
    input_shape: tuple[int, ...],
    n_outputs: int,
    moments: Callable[[], Moments] | None = None,
) -> nn.Module:
    """Build a model whose initial weights depend on the trial's seed alone.

    `moments` are computed only if a layer standardises.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(trial.seed, "weights"))
        model = build(input_shape, n_outputs)
    for module in model.modules():
        if moments is not None and isinstance(module, Standardize):
            module.set(moments())
    return model


def instance_moments(X: Tensor, rows: Any) -> Moments:
    """Moments of these rows, computed in chunks to avoid a second copy."""
    parts = torch.as_tensor(rows, device=X.device).split(10_000)
    return join_moments(moments_of(as_inputs(X[part])) for part in parts)
