"""Scores of a trained net."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unbag.bags import Task
from unbag.engine.batches import as_inputs, as_tensor
from unbag.engine.trial import TrialResult

__all__ = ["scores_of"]


@torch.no_grad()
def scores_of(
    result: TrialResult, X: Any, *, task: Task = "binary", chunk: int = 5000
) -> NDArray[np.float64]:
    """Probabilities of shape (n,) for a binary task, (n, n_outputs) otherwise.

    Computed in double precision, so that a prediction does not depend on what is beside it.
    """
    net = copy.deepcopy(result.model).double().eval()
    tensor = as_tensor(X, torch.device("cpu"))
    parts = [
        _probabilities(net(as_inputs(tensor[start : start + chunk]).double()), task)
        for start in range(0, len(tensor), chunk)
    ]
    return torch.cat(parts).numpy()


def _probabilities(logits: Tensor, task: Task) -> Tensor:
    if task == "multiclass":
        return logits.softmax(dim=-1)
    return logits.sigmoid().squeeze(-1) if task == "binary" else logits.sigmoid()
