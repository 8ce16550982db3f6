"""`CompiledAccelerator`: torch.compile, Triton kernels, and several nets at once on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from unbag.arguments import check_whole
from unbag.rules import Rule
from unbag.training import Accelerator, Monitor
from unbag.training.learners import STATEFUL_LAYERS
from unbag.training.stack import Stack
from unbag_paper.compiled.checked import Checked, changes, values_and_gradients
from unbag_paper.compiled.rule_step import fused_step
from unbag_paper.kernels import use_kernels

__all__ = ["CompiledAccelerator", "compiled_update", "engine_settings"]

_MOST_FORMS = 200  # of one function that are compiled


@dataclass(frozen=True)
class CompiledAccelerator(Accelerator):
    """Compile what is checked to compute the same, and overlap nets that cannot be stacked.

    Parameters
    ----------
    compile : bool
        Compile the optimizer, and nets and rules that are not stacked and see bags of one size.
        What torch compiles wrongly, or not at all, runs uncompiled, with a `CompilationWarning`.
    side_by_side : int
        On a GPU, nets that share it, each on a stream of its own.
    """

    compile: bool = False
    side_by_side: int = 8

    def __post_init__(self) -> None:
        check_whole("side_by_side", self.side_by_side)

    @property
    def stacks_at_once(self) -> int:  # type: ignore[override]
        """Several only where there is a GPU to share."""
        return self.side_by_side if torch.cuda.is_available() else 1

    def net(self, model: nn.Module) -> Callable[[Tensor], Tensor]:
        """Use the kernels of convolutions, and compile code for one size of batch at a time."""
        use_kernels(model)
        if not self.compile:
            return model
        compiled: Callable[[Tensor], Tensor] = torch.compile(model, dynamic=False)
        if any(isinstance(module, STATEFUL_LAYERS) for module in model.modules()):
            return compiled  # to call it twice would change what it holds or draws
        parameters = [p for p in model.parameters() if p.requires_grad]
        return Checked("net", model, compiled, values_and_gradients(parameters))

    def rule_step(self, rule: Rule) -> Callable[..., tuple[Tensor, Tensor | None]]:
        """The step as one compiled function."""
        return partial(fused_step, rule) if self.compile else rule.step

    def update(self, function: Callable[..., None]) -> Callable[..., None]:
        """The update in few kernels."""
        return compiled_update(function) if self.compile else function

    def switches(self) -> AbstractContextManager[Any]:
        """Nets and batches come in many forms; after eight, torch would go on uncompiled."""
        if not self.compile:
            return nullcontext()
        from torch._dynamo import config

        return config.patch(cache_size_limit=_MOST_FORMS)  # its name in every version

    def run_epoch(self, stacks: Sequence[Stack], monitors: Sequence[Monitor], epoch: int) -> None:
        """Take the stacks' steps in turn, so that a GPU overlaps them.

        In the first epoch steps are captured, which must not be overlapped.
        """
        if epoch == 0 or len(stacks) == 1:
            for stack in stacks:
                stack.run_epoch(monitors, epoch)
                if len(stacks) > 1:
                    torch.cuda.synchronize()
            return
        for stack in stacks:
            with stack.on_stream():
                stack.begin(epoch)
        for number in range(max(len(stack.batches) for stack in stacks)):
            for stack in stacks:
                if number < len(stack.batches):
                    with stack.on_stream():
                        stack.step(stack.batches[number])
        for stack in stacks:
            with stack.on_stream():
                stack.end(monitors)


@cache
def compiled_update(function: Callable[..., None]) -> Callable[..., None]:
    """One compiled function for all stacks, so that it is compiled once."""
    return Checked("optimizer", function, torch.compile(function), changes)


def engine_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the engine's `Settings`, with ``compile`` and ``side_by_side`` as accelerator.

    Examples
    --------
    >>> engine_settings({"precision": "tf32", "compile": True})["accelerator"]
    CompiledAccelerator(compile=True, side_by_side=8)
    """
    own = {name: options[name] for name in ("compile", "side_by_side") if name in options}
    rest = {name: value for name, value in options.items() if name not in own}
    return rest | {"accelerator": CompiledAccelerator(**own)}
