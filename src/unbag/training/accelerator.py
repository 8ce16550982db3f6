"""`Accelerator`: the one hook for faster ways of doing what the training loop does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from unbag.rules import Rule

if TYPE_CHECKING:
    from unbag.training.monitor import Monitor
    from unbag.training.stack import Stack

__all__ = ["Accelerator"]


class Accelerator:
    """How the parts of a training step are run; this class runs them as they are.

    A subclass may compile or overlap them, and must give the same results up to rounding.

    Attributes
    ----------
    stacks_at_once : int
        Stacks that are trained together by `run_epoch`.
    """

    stacks_at_once = 1

    def net(self, model: nn.Module) -> Callable[[Tensor], Tensor]:
        """Forward pass of a net that is not stacked and sees bags of one size."""
        return model

    def rule_step(self, rule: Rule) -> Callable[..., tuple[Tensor, Tensor | None]]:
        """``rule.step`` of a trial that is not stacked."""
        return rule.step

    def update(self, function: Callable[..., None]) -> Callable[..., None]:
        """Adam's update of all parameters, in place."""
        return function

    def switches(self) -> AbstractContextManager[Any]:
        """Global settings of torch while training runs."""
        return nullcontext()

    def run_epoch(self, stacks: Sequence[Stack], monitors: Sequence[Monitor], epoch: int) -> None:
        """Train every stack for one epoch."""
        for stack in stacks:
            stack.run_epoch(monitors, epoch)
