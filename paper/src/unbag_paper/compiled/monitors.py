"""Monitors: values measured after each epoch, such as the risk on held-out bags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from unbag.arguments import check_choice
from unbag.bags import Bags, Task
from unbag.bags.batch import as_scores
from unbag.bags.tasks import risk_scale
from unbag.errors import BagDataError
from unbag.rules.debiased_square import pairwise_risk
from unbag.training.batches import all_bags, as_inputs, as_tensor
from unbag.training.learners import Learner

Criterion = Literal["zero_one", "square"]
CHUNK = 5000  # instances evaluated at a time


@dataclass(frozen=True, eq=False)
class Monitor:
    """A value per trial: `measure` of the logits (n_trials, n, n_outputs) on instances `X`."""

    name: str
    X: Any
    measure: Callable[[Tensor], Tensor]

    def logits(self, learner: Learner) -> Tensor:
        """Logits of every trial on the instances: (n_trials, n, n_outputs)."""
        parts = [learner.logits(as_inputs(part), shared=True) for part in self.X.split(CHUNK)]
        return torch.cat(parts, dim=1).float()


def on_device(monitors: Sequence[Monitor], device: torch.device) -> list[Monitor]:
    """Move the instances to a device; monitors that share one `X` still share it there."""
    different = {id(monitor.X): monitor.X for monitor in monitors}
    moved = {key: as_tensor(X, device) for key, X in different.items()}
    return [replace(monitor, X=moved[id(monitor.X)]) for monitor in monitors]


@torch.no_grad()
def measure_all(monitors: Sequence[Monitor], learner: Learner) -> dict[str, Tensor]:
    """Value of every monitor; those that share one `X` share the logits."""
    logits: dict[int, Tensor] = {}
    values = {}
    for monitor in monitors:
        if id(monitor.X) not in logits:
            logits[id(monitor.X)] = monitor.logits(learner)
        values[monitor.name] = monitor.measure(logits[id(monitor.X)])
    return values


def held_out_risk(bags: Bags, *, criterion: Criterion = "square") -> Monitor:
    r"""Estimate the instance risk on held-out bags, without labels.

    .. math:: \hat R = \bar r^2 + (1 - 1/N) S^2

    with residuals of hard predictions ("zero_one") or of scores ("square"), averaged over labels.
    Unbiased for the 0-1 error or the square loss when instances are i.i.d.
    """
    check_choice("criterion", criterion, get_args(Criterion))
    if bags.n_bags < 2:
        raise BagDataError(f"held_out_risk needs at least 2 bags, got {bags.n_bags}.")
    X = bags.X[torch.as_tensor(bags.rows) if isinstance(bags.X, Tensor) else bags.rows]
    batch = all_bags(bags)
    scale = risk_scale(bags.task, bags.n_outputs, hard=criterion == "zero_one")

    def measure(logits: Tensor) -> Tensor:
        # Without making a GPU wait; nobody changes what is copied.
        moved: dict[str, Any] = {
            name: value.to(logits.device, non_blocking=True)
            for name, value in vars(batch).items()
            if isinstance(value, Tensor)
        }
        here = replace(batch, **moved)
        scores = _scores(logits, bags.task, criterion)
        return scale * pairwise_risk(here.mean(scores) - here.targets, here)

    return Monitor("held_out_risk", X, measure)


def _scores(logits: Tensor, task: Task, criterion: Criterion) -> Tensor:
    if criterion == "square":
        return as_scores(logits, task)
    if task == "multiclass":
        best = logits.argmax(dim=-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, best, 1.0)
    return (logits > 0).to(logits.dtype)


def check_monitors(monitors: Sequence[Monitor]) -> None:
    """Raise if two monitors have the same name."""
    names = [monitor.name for monitor in monitors]
    if len(set(names)) < len(names) or "loss" in names:
        raise ValueError(f"monitors must have distinct names other than 'loss', got {names}.")
