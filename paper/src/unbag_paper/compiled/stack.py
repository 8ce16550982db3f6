"""`CompiledStack`: trials on a stream of their own, with compiled parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unbag.training import TrialResult
from unbag.training.adam import adam_update
from unbag.training.learners import STATEFUL_LAYERS, Learner
from unbag.training.stack import Stack, Step
from unbag_paper.compiled.checked import Checked, changes, values_and_gradients
from unbag_paper.compiled.graphs import GraphedStep
from unbag_paper.compiled.monitors import Monitor, measure_all
from unbag_paper.compiled.rule_step import fused_step
from unbag_paper.compiled.settings import EngineSettings, autocast
from unbag_paper.kernels import use_kernels

__all__ = ["CompiledStack", "compiled_update", "fast_net"]


class CompiledStack(Stack):
    """A stack whose nets, rules and optimizer may be compiled, in the precision asked for.

    On a GPU its steps are captured, and its work goes on a stream of its own.
    """

    step_kind: ClassVar[type[Step]] = GraphedStep
    settings: EngineSettings

    def __init__(self, *parts: Any, **options: Any) -> None:
        super().__init__(*parts, **options)
        self.monitors: Sequence[Monitor] = ()
        self.stream = torch.cuda.Stream() if self.device.type == "cuda" else None
        if self.settings.compile:
            self.optimizer.update = compiled_update(adam_update)

    def _learner(self, models: list[nn.Module]) -> Learner:
        learner = super()._learner(models)
        if len(models) == 1 and all(isinstance(batch.sizes, int) for batch in self.batches):
            learner.forward = fast_net(models[0], compiled=self.settings.compile)
        plain = learner.logits

        def logits(x: Tensor, *, shared: bool = False) -> Tensor:
            with autocast(self.device, self.settings.precision):
                return plain(x, shared=shared)

        learner.logits = logits  # type: ignore[method-assign]
        return learner

    def _step(self, X: Tensor, prior: Tensor) -> Step:
        step = super()._step(X, prior)
        # Stacks come in many shapes, each of which would have to be compiled.
        if self.settings.compile and len(self.trials) == 1:
            step.calls = [partial(fused_step, rule) for rule, _ in step.runs]
        return step

    def on_stream(self) -> AbstractContextManager[Any]:
        """Where this stack's work goes: on a GPU, a stream of its own."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    def _measure(self) -> dict[str, Tensor]:
        return measure_all(self.monitors, self.learner)

    def run_epoch(self, epoch: int) -> None:
        """Train on every batch once, then measure."""
        with self.on_stream():
            super().run_epoch(epoch)

    def begin(self, epoch: int) -> None:
        """Wait for what was set up on the default stream, then begin."""
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.default_stream(self.device))
        super().begin(epoch)

    def summary(self) -> str:
        """A few words for the progress bar."""
        self._wait()
        return super().summary()

    def results(self) -> list[TrialResult]:
        """One result a trial, as it is now."""
        self._wait()
        return super().results()

    def _wait(self) -> None:
        """Let the stack's stream come to its end, for what is then read on another one."""
        if self.stream is not None:
            self.stream.synchronize()


def fast_net(model: nn.Module, *, compiled: bool) -> Callable[[Tensor], Tensor]:
    """Use the kernels of convolutions, and compile code for one size of batch at a time."""
    use_kernels(model)
    if not compiled:
        return model
    fast: Callable[[Tensor], Tensor] = torch.compile(model, dynamic=False)
    if any(isinstance(module, STATEFUL_LAYERS) for module in model.modules()):
        return fast  # to call it twice would change what it holds or draws
    parameters = [p for p in model.parameters() if p.requires_grad]
    return Checked("net", model, fast, values_and_gradients(parameters))


@cache
def compiled_update(function: Callable[..., None]) -> Callable[..., None]:
    """Adam's update in few kernels; one function for all stacks, so that it is compiled once."""
    return Checked("optimizer", function, torch.compile(function), changes)
