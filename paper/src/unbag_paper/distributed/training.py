"""Data-parallel training over `torch.distributed`: many workers give what one gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from unbag.bags import Bags
from unbag.models import KeyedDropout, ModelBuilder, Moments, join_moments
from unbag.randomness import derive_seed
from unbag.training.batches import Batch, TrialData, as_tensor, trial_data
from unbag.training.learners import Learner
from unbag.training.settings import Settings
from unbag.training.stack import Step, instance_moments, seeded_model
from unbag.training.trial import Trial, TrialResult
from unbag_paper.compiled.monitors import Monitor, check_monitors, on_device
from unbag_paper.compiled.settings import EngineSettings, torch_switches
from unbag_paper.compiled.stack import CompiledStack
from unbag_paper.distributed.checkpoint import Checkpoints, description
from unbag_paper.distributed.sharding import Shard, ShardedBatch, gather_shards
from unbag_paper.nets import get_net

__all__ = ["train_sharded"]


def train_sharded(
    trial: Trial,
    bags: Bags,
    *,
    model: str | ModelBuilder = "mlp",
    monitors: Sequence[Monitor] = (),
    settings: Settings | None = None,
    checkpoints: str | Path | None = None,
) -> TrialResult:
    """Train one trial on the bags of all workers of the default process group.

    Call it on every worker, each with whole bags of its own: see `shard_bags`, and
    `unbag.parallel` for ways to start workers.

    Parameters
    ----------
    trial : Trial
    bags : Bags
        This worker's bags.
    model : str or function
        As for `train`. Batch normalisation is refused, because its moments would be a worker's own.
    monitors : sequence of Monitor
        Measured on the first worker after each epoch.
    settings : Settings, optional
        ``bags_per_batch`` counts the bags of all workers together. `EngineSettings` serve too.
    checkpoints : path, optional
        Folder that all workers see. The state is saved there after each epoch, and training goes on
        from the last epoch that is there, with as many workers as there are now.

    Returns
    -------
    TrialResult
        The same on every worker.

    Notes
    -----
    The result is that of `train` on the workers' bags one after the other, up to rounding, however
    many workers there are: batches are drawn over all bags, sums over a batch run over all workers
    forwards and backwards, and dropout masks go by an instance's place in the whole batch. Plain
    `torch.nn.Dropout` draws its own masks on every worker.
    """
    settings = EngineSettings.of(settings)
    check_monitors(monitors)
    shard, device = gather_shards(bags), torch.device(settings.device)
    data = trial_data(trial, shard.table, settings)
    X = as_tensor(bags.X, device)
    stack = _ShardedStack(shard, trial, data, X, get_net(model), settings)
    about = description(stack, shard.table, monitors)
    saved = Checkpoints(checkpoints, about) if checkpoints is not None else None
    begin = saved.restore(stack) if saved is not None else 0
    stack.monitors = on_device(monitors, device)
    with torch.random.fork_rng(), torch_switches(settings):
        for epoch in range(begin, settings.max_epochs):
            # Seeded anew each epoch, so that a training that goes on later draws the same.
            torch.manual_seed(derive_seed(trial.seed, "training", epoch, dist.get_rank()))
            stack.run_epoch(epoch)
            if saved is not None:
                saved.save(stack, epoch)
    return stack.results()[0]


class _ShardedStep(Step):
    """A step on one worker's part of a batch."""

    def __call__(self, batch: Batch) -> None:
        """Train on one batch."""
        assert isinstance(batch, ShardedBatch)
        _set_slots(self.learner, batch.slots)
        super().__call__(batch)


class _ShardedStack(CompiledStack):
    """A stack of one trial whose bags are on many workers."""

    step_kind: ClassVar[type[Step]] = _ShardedStep

    def __init__(
        self,
        shard: Shard,
        trial: Trial,
        data: TrialData,
        X: Tensor,
        build: ModelBuilder,
        settings: EngineSettings,
    ) -> None:
        self.shard = shard
        super().__init__([trial], [data], X, build, settings)
        self.optimizer.update = _along_all(self.optimizer.update)

    def _model(self, build: ModelBuilder, trial: Trial, bags: Bags, X: Tensor) -> nn.Module:
        moments = _common_moments(X, self.shard, bags)
        model = seeded_model(build, trial, self.input_shape, bags.n_outputs, lambda: moments)
        if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()):
            raise ValueError(
                "model must not use batch normalisation on many workers: each would normalise by "
                "its own instances. Use layer or group normalisation."
            )
        return model.to(X.device)

    def _cut(self, data: Sequence[TrialData]) -> list[Batch]:
        return [self.shard.cut(data[0], i, self.device) for i in range(len(data[0].batches))]

    def _measure(self) -> dict[str, Tensor]:
        """Measured once, so that all workers have the same history."""
        values = torch.zeros(len(self.monitors), device=self.device)
        if dist.get_rank() == 0 and self.monitors:
            values = torch.cat(list(super()._measure().values())).float()
        dist.broadcast(values, 0)
        return {m.name: values[i : i + 1] for i, m in enumerate(self.monitors)}

    def results(self) -> list[TrialResult]:
        """One result, whose net knows of no workers."""
        _set_slots(self.learner, None)
        return super().results()


def _along_all(update: Callable[..., None]) -> Callable[..., None]:
    """An optimizer's update along the gradients of the whole batch, of which workers have parts."""

    def joined(
        parameters: list[Tensor],
        first: list[Tensor],
        second: list[Tensor],
        rates: list[Tensor],
        gradients: list[Tensor],
        *others: Any,
    ) -> None:
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        parts = (flat / dist.get_world_size()).split([g.numel() for g in gradients])
        whole = [part.view_as(g) for part, g in zip(parts, gradients, strict=True)]
        update(parameters, first, second, rates, whole, *others)

    return joined


def _set_slots(learner: Learner, slots: Tensor | None) -> None:
    """Tell dropout where the instances that come stand in the whole batch."""
    for module in learner.model.modules():
        if isinstance(module, KeyedDropout):
            module.slots = slots


def _common_moments(X: Tensor, shard: Shard, bags: Bags) -> Moments:
    """Moments of the instances of all workers, or of those that some rule leaves to train on."""
    rows = shard.rows(bags.rows)
    parts: list[Moments | None] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, instance_moments(X, rows) if len(rows) else None)
    return join_moments(part for part in parts if part is not None)
