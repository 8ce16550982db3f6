"""One training step of a stack: forward, every trial's own rule, backward, update."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

from unbag.bags import Task
from unbag.rules import Rule
from unbag.training.adam import StackedAdam
from unbag.training.batches import Batch, as_inputs
from unbag.training.learners import Learner
from unbag.training.trial import Trial

__all__ = ["Step"]


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
    ) -> None:
        self.learner, self.optimizer, self.X, self.prior = learner, optimizer, X, prior
        self.task: Task = task
        self.runs = _rule_slices(trials)
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


def _rule_slices(trials: Sequence[Trial]) -> list[tuple[Rule, slice]]:
    """Runs of trials with one rule; trials come sorted by rule."""
    runs, start = [], 0
    for rule, group in groupby(trials, key=lambda trial: trial.rule):
        stop = start + len(list(group))
        runs.append((rule, slice(start, stop)))
        start = stop
    return runs
