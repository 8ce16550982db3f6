"""Scores of a trained net."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from unbag.arrays import Array
from unbag.bags import Task
from unbag.bags.batch import as_scores
from unbag.training.batches import as_inputs, as_tensor
from unbag.training.trial import TrialResult


def scores_of(result: TrialResult, X: Any, *, task: Task = "binary") -> Array:
    """Probabilities, or amounts, of shape (n,) for one output, (n, n_outputs) otherwise."""
    return _by_task(as_scores(_logits(result, X), task), task)


def logits_of(result: TrialResult, X: Any, *, task: Task = "binary") -> Array:
    """Outputs of the net before they become probabilities; shapes as in `scores_of`."""
    return _by_task(_logits(result, X), task)


@torch.no_grad()
def _logits(result: TrialResult, X: Any) -> Tensor:
    # Double precision: a prediction then does not depend on what is beside it.
    net = copy.deepcopy(result.model).double().eval()
    parts = as_tensor(X, torch.device("cpu")).split(5000)
    return torch.cat([net(as_inputs(part).double()) for part in parts])


def _by_task(outputs: Tensor, task: Task) -> Array:
    return (outputs.squeeze(-1) if task in ("binary", "amount") else outputs).numpy()
