"""One training on many workers: processes of this machine, or Ray Train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch.distributed as dist

from unbag.bags import Bags
from unbag.extras import import_extra
from unbag.models import ModelBuilder
from unbag.parallel import connect
from unbag.training import Settings, Trial, TrialResult
from unbag_paper.compiled.monitors import Monitor
from unbag_paper.distributed.sharding import shard_bags
from unbag_paper.distributed.training import train_sharded
from unbag_paper.distributed.workers import join_group, lone_group, run_workers

__all__ = ["ParallelTraining"]


@dataclass(frozen=True, eq=False)
class ParallelTraining:
    """A training whose bags are shared out among workers; it gives what one worker gives.

    Parameters
    ----------
    trial : Trial
    bags : Bags
        All of them: every worker takes its share, whole bags.
    model : str or function
    monitors : sequence of Monitor
    settings : Settings
    checkpoints : path, optional
        Folder that all workers see, where the state is saved after each epoch. A killed worker
        costs the epoch it was in; without a folder, all of them.
    """

    trial: Trial
    bags: Bags
    model: str | ModelBuilder = "mlp"
    monitors: Sequence[Monitor] = ()
    settings: Settings = field(default_factory=Settings)
    checkpoints: str | Path | None = None

    def __call__(self) -> TrialResult:
        """Train as one worker of the group this process is in, such as torchrun's."""
        with join_group(self._backend):
            share = shard_bags(self.bags, dist.get_rank(), dist.get_world_size())
            return train_sharded(
                self.trial,
                share,
                model=self.model,
                monitors=self.monitors,
                settings=self.settings,
                checkpoints=self.checkpoints,
            )

    @property
    def _backend(self) -> str:
        return "nccl" if self.settings.device.startswith("cuda") else "gloo"

    def on_processes(self, n_workers: int, *, max_restarts: int = 3) -> TrialResult:
        """Train in processes of this machine."""
        result: TrialResult = run_workers(
            self, n_workers=n_workers, max_restarts=max_restarts, backend=self._backend
        )
        return result

    def on_ray(
        self, n_workers: int, *, address: str = "local", max_failures: int = 3
    ) -> TrialResult:
        """Train by Ray Train; needs the extra ``unbag[ray]``, and `checkpoints`.

        The result is read from the last checkpoint.
        """
        if self.checkpoints is None:
            raise ValueError("on_ray needs `checkpoints`, a folder that all machines see.")
        connect(address)
        torch_backend = import_extra("ray.train.torch", extra="ray", purpose="Ray Train")
        train = import_extra("ray.train", extra="ray", purpose="Ray Train")
        trainer = torch_backend.TorchTrainer(
            self._ignoring_the_result,
            torch_config=torch_backend.TorchConfig(backend=self._backend),
            scaling_config=train.ScalingConfig(
                num_workers=n_workers, use_gpu=self._backend == "nccl"
            ),
            run_config=train.RunConfig(
                storage_path=str(Path(self.checkpoints).absolute().parent),
                failure_config=train.FailureConfig(max_failures=max_failures),
            ),
        )
        trainer.fit()
        with lone_group():  # all epochs are done, so this only reads the last state
            return self()

    def _ignoring_the_result(self, config: dict[str, Any] | None = None) -> None:
        self()
