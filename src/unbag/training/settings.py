"""Settings of a training, the same for all trials of a stack."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from unbag.arguments import check_choice, check_device, check_whole
from unbag.bags import Bags

Schedule = Literal["constant", "cosine"]

# Instances in a minibatch when the number of bags is not given: half of the paper's number,
# which held-out bags of MNIST prefer (risk .040 against .054 after 30 epochs, bags of 100).
INSTANCES_PER_BATCH = 500
# Small data needs steps more than it needs large batches.
MIN_BATCHES = 32


@dataclass(frozen=True)
class Settings:
    """Settings of a training, the same for all its trials.

    Parameters
    ----------
    max_epochs : int
    bags_per_batch : int, optional
        By default about 500 instances' worth, with at least 32 batches per epoch if there are
        enough bags for batches of four.
    shuffle : bool
        Whether batches are drawn at random, or bags are taken in order.
    batch_seed : int, optional
        Seed of the batches of all trials; by default each trial uses its own seed. Trials on
        unequal bags are stacked only if they share batches.
    redraw : bool
        Whether batches are redrawn each epoch; the paper draws them once.
    schedule : {"constant", "cosine"}
        Learning rate over the epochs.
    device : str
    progress : bool
        Show a progress bar.
    """

    max_epochs: int = 100
    bags_per_batch: int | None = None
    shuffle: bool = True
    batch_seed: int | None = None
    redraw: bool = False
    schedule: Schedule = "constant"
    device: str = "cpu"
    progress: bool = False

    def __post_init__(self) -> None:
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_device(self.device)
        check_whole("max_epochs", self.max_epochs)
        check_whole("bags_per_batch", self.bags_per_batch, optional=True)

    @classmethod
    def from_estimator(cls, estimator: Any, **others: Any) -> Settings:
        """Settings from the parameters of an estimator, and others."""
        names = {f.name for f in fields(cls)} & set(estimator.get_params(deep=False))
        return cls(**{name: getattr(estimator, name) for name in names} | others)

    def rate_factor(self, epoch: int) -> float:
        """Learning rate of an epoch relative to its base."""
        if self.schedule == "constant":
            return 1.0
        return 0.5 * (1 + math.cos(math.pi * epoch / self.max_epochs))

    def batch_of(self, bags: Bags) -> int:
        """Bags in a batch."""
        if self.bags_per_batch is not None:
            return self.bags_per_batch
        wanted = round(INSTANCES_PER_BATCH / bags.sizes.mean())
        return max(4, min(wanted, bags.n_bags // MIN_BATCHES))
