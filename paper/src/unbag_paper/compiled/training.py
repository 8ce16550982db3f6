"""`CompiledTraining`: torch.compile, Triton kernels, and several nets at once on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from unbag.bags import Bags
from unbag.models import ModelBuilder
from unbag.training import Settings, Training, Trial, TrialResult
from unbag.training.stack import Stack
from unbag_paper.compiled.monitors import Monitor, check_monitors, on_device
from unbag_paper.compiled.settings import EngineSettings, torch_switches
from unbag_paper.compiled.stack import CompiledStack
from unbag_paper.nets import get_net

__all__ = ["CompiledTraining", "train"]


class CompiledTraining(Training):
    """Compile what is checked to compute the same, and overlap nets that cannot be stacked.

    Parameters are those of `Training`, with monitors, `EngineSettings` and the nets of `NETS`.
    """

    stack_kind: ClassVar[type[Stack]] = CompiledStack
    settings: EngineSettings

    def __init__(
        self,
        *parts: Any,
        model: str | ModelBuilder = "mlp",
        monitors: Sequence[Monitor] = (),
        settings: Settings | None = None,
        **options: Any,
    ) -> None:
        check_monitors(monitors)
        engine = EngineSettings.of(settings)
        super().__init__(*parts, model=get_net(model), settings=engine, **options)
        here = on_device(monitors, torch.device(engine.device))
        for stack in self.stacks:
            assert isinstance(stack, CompiledStack)
            stack.monitors = here

    @property
    def stacks_at_once(self) -> int:  # type: ignore[override]
        """Several only where there is a GPU to share."""
        return self.settings.side_by_side if torch.cuda.is_available() else 1

    def run(self, *, until: int) -> None:
        """Train until every trial has had so many epochs."""
        with torch_switches(self.settings):
            super().run(until=until)

    def _run_epoch(self, stacks: Sequence[Stack], epoch: int) -> None:
        """Take the stacks' steps in turn, so that a GPU overlaps them.

        In the first epoch steps are captured, which must not be overlapped.
        """
        if epoch == 0 or len(stacks) == 1:
            for stack in stacks:
                stack.run_epoch(epoch)
                if len(stacks) > 1:
                    torch.cuda.synchronize()
            return
        fast = [stack for stack in stacks if isinstance(stack, CompiledStack)]
        for stack in fast:
            with stack.on_stream():
                stack.begin(epoch)
        for number in range(max(len(stack.batches) for stack in fast)):
            for stack in fast:
                if number < len(stack.batches):
                    with stack.on_stream():
                        stack.step(stack.batches[number])
        for stack in fast:
            with stack.on_stream():
                stack.end()


def train(
    trials: Sequence[Trial],
    bags: Bags | Sequence[Bags],
    *,
    model: str | ModelBuilder = "mlp",
    monitors: Sequence[Monitor] = (),
    settings: EngineSettings,
) -> list[TrialResult]:
    """`unbag.training.train`, by a `CompiledTraining`."""
    training = CompiledTraining(trials, bags, model=model, monitors=monitors, settings=settings)
    training.run(until=settings.max_epochs)
    return training.results()
