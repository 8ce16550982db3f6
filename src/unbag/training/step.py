"""One training step of a stack: forward, every trial's own rule, backward, update."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby

import torch
from torch import Tensor

from unbag.bags import Task
from unbag.rules import Rule
from unbag.training.adam import StackedAdam
from unbag.training.batches import Batch, as_inputs
from unbag.training.learners import Learner
from unbag.training.settings import Precision, Settings
from unbag.training.trial import Trial

__all__ = ["GraphedStep", "Step", "autocast", "rule_slices"]


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Where matrix products are rounded to bfloat16, if that is the precision."""
    if precision != "bfloat16":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def rule_slices(trials: Sequence[Trial]) -> list[tuple[Rule, slice]]:
    """Runs of trials with one rule; trials come sorted by rule."""
    runs, start = [], 0
    for rule, group in groupby(trials, key=lambda trial: trial.rule):
        stop = start + len(list(group))
        runs.append((rule, slice(start, stop)))
        start = stop
    return runs


class Step:
    """A callable that trains every trial of a stack on one batch and adds up their losses."""

    def __init__(
        self,
        learner: Learner,
        optimizer: StackedAdam,
        trials: Sequence[Trial],
        X: Tensor,
        prior: Tensor,
        *,
        task: Task,
        settings: Settings | None = None,
    ) -> None:
        self.learner, self.optimizer, self.X, self.prior = learner, optimizer, X, prior
        self.task: Task = task
        settings = settings or Settings()
        self.precision = settings.precision
        self.runs = rule_slices(trials)
        # Stacks come in many shapes, and an accelerator would have to prepare each of them.
        run = settings.accelerator.rule_step if len(trials) == 1 else lambda rule: rule.step
        self.calls = [run(rule) for rule, _ in self.runs]
        n_outputs = 1 if prior.ndim == 1 else prior.shape[1]
        self.states = [self._fresh_state(trials, n_outputs) for _ in self.runs]
        self.loss_sum = torch.zeros(len(trials), device=X.device)

    def _fresh_state(self, trials: Sequence[Trial], n_outputs: int) -> Tensor:
        return torch.full((len(trials), 1, n_outputs), torch.nan, device=self.X.device)

    def take_over(self, other: Step, chosen: Tensor) -> None:
        """Start from the rules' states of another step's trials, of which these are some."""
        parts = [state[trials] for state, (_, trials) in zip(other.states, other.runs, strict=True)]
        states = torch.cat(parts)[chosen]
        for state in self.states:
            state.copy_(states)

    def __call__(self, batch: Batch) -> None:
        """Train on one batch."""
        x = as_inputs(_gather(self.X, batch.rows))
        shared = len(x) == 1
        with autocast(self.X.device, self.precision):
            logits = self.learner.logits(x[0] if shared else x, shared=shared)
        losses = self.losses(logits.float(), batch)
        gradients = torch.autograd.grad(losses.sum(), self.learner.parameters)
        self.optimizer.step(self._joined(gradients))
        self.learner.advance()
        self.loss_sum += losses.detach()

    def _joined(self, gradients: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What to step along; workers that share a batch put their parts together here."""
        return gradients

    def losses(self, logits: Tensor, batch: Batch) -> Tensor:
        """Loss of every trial by its own rule."""
        if self.task in ("binary", "amount"):
            logits = logits.squeeze(-1)
        parts = []
        for number, (_, trials) in enumerate(self.runs):
            state = self.states[number][trials]
            bags = batch.bags(trials, self.prior, self.task)
            loss, new_state = self.calls[number](logits[trials], bags, state)
            if new_state is not state and new_state is not None:
                state.copy_(new_state)
            parts.append(loss)
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def _gather(X: Tensor, rows: Tensor) -> Tensor:
    """``X[rows]``, several times as fast on a CPU."""
    return X.index_select(0, rows.flatten()).unflatten(0, rows.shape)


class GraphedStep:
    """A step captured once per batch shape as a CUDA graph and replayed without the host.

    Capture needs a stream other than the default one to be current. Sizes that differ are read back
    to the host, which no capture allows: such batches run eagerly.
    """

    def __init__(self, step: Step, *, warm_up: int = 3) -> None:
        self.step, self.warm_up = step, warm_up
        self.graphs: dict[object, tuple[torch.cuda.CUDAGraph, Batch]] = {}
        self.eager_calls = 0

    @property
    def loss_sum(self) -> Tensor:
        """The wrapped step's running sum."""
        return self.step.loss_sum

    def __call__(self, batch: Batch) -> None:
        """Replay the captured step; a batch of a new shape is run eagerly, then captured."""
        if not isinstance(batch.sizes, int):
            self.step(batch)
            return
        if batch.key not in self.graphs:
            self.eager_calls += 1
            self.step(batch)
            if self.eager_calls >= self.warm_up:
                self._capture(batch)
            return
        graph, static = self.graphs[batch.key]
        for held, given in zip(static.tensors, batch.tensors, strict=True):
            held.copy_(given)
        graph.replay()

    def _capture(self, batch: Batch) -> None:
        """On the stack's own stream: graphs captured on one stream share cuBLAS's workspace."""
        noise = None if batch.noise_variance is None else batch.noise_variance.clone()
        static = Batch(batch.rows.clone(), batch.proportions.clone(), noise, batch.sizes)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            self.step(static)
        self.graphs[batch.key] = (graph, static)
