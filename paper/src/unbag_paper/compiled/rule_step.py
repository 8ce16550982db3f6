"""A rule's step as one compiled function; uncompiled it is dozens of kernels of a few microseconds.

It is traced by its operations, which do not depend on values, and not by its Python code: rules
share that code, and the compiler would give up on a function with so many forms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from unbag.bags import BagBatch, Task
from unbag.rules import Rule
from unbag_paper.compiled.checked import Checked, values_and_gradients

__all__ = ["fused_step"]

StepResult = tuple[Tensor, Tensor | None]

_both = values_and_gradients()


def fused_step(rule: Rule, logits: Tensor, batch: BagBatch, state: Tensor) -> StepResult:
    """``rule.step(logits, batch, state)``, compiled where bags are equal and exact."""
    plain = type(batch) is BagBatch and batch.noise_variance is None  # not a worker's part of one
    if not plain or not isinstance(batch.sizes, int):
        return rule.step(logits, batch, state)
    assert batch.prior is not None
    tensors = (logits, batch.proportions, batch.prior, state)
    shapes = tuple(tuple(tensor.shape) for tensor in tensors)
    return _compiled(rule, batch.sizes, batch.task, logits.device, shapes)(*tensors)


@cache
def _compiled(
    rule: Rule, size: int, task: Task, device: torch.device, shapes: tuple[tuple[int, ...], ...]
) -> Callable[..., StepResult]:
    def step(logits: Tensor, proportions: Tensor, prior: Tensor, state: Tensor) -> StepResult:
        return rule.step(logits, BagBatch(proportions, size, None, prior, task), state)

    logits, *others = (torch.zeros(shape, device=device) for shape in shapes)
    traced = make_fx(step)(logits.requires_grad_(), *others)
    return Checked(f"step of {rule!r}", step, torch.compile(traced, dynamic=False), _observe)


def _observe(function: Callable[..., StepResult], inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """What a step does at first, and with states of which one is far from what it has itself."""
    *others, state = inputs
    later = [(*others, torch.full_like(state, value)) for value in (0.1, 0.9)]
    return [seen for given in (inputs, *later) for seen in _both(function, given)]
