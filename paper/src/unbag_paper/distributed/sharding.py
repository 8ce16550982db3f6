"""Bags on many workers: each holds some of them whole, and sums run over all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from unbag.bags import BagBatch, Bags, Task
from unbag.errors import BagDataError
from unbag.training.batches import Batch, TrialData

__all__ = ["Shard", "ShardedBagBatch", "ShardedBatch", "gather_shards", "shard_bags", "sum_over"]

Array = NDArray[Any]


class _SumOver(torch.autograd.Function):
    """Sum over the workers, whose gradient is summed over them too.

    The sum reaches every worker's loss, so its gradient is the sum of what all of them send back.
    That makes the gradient of one worker the gradient of the *sum* of the workers' losses: average
    the workers' gradients, as `DistributedDataParallel` does, and it is that of the loss.
    """

    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        total = values.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        return sum_over(gradients[0])


def sum_over(values: Tensor) -> Tensor:
    """Sum over the workers, forwards and backwards."""
    total: Tensor = _SumOver.apply(values)
    return total


@dataclass(frozen=True)
class ShardedBagBatch(BagBatch):
    """One worker's bags of a batch whose other bags are on other workers.

    A drop-in for `BagBatch` in anybody's own loop over `torch.distributed`: every rule then gives
    the loss of the whole batch on every worker. Gradients are to be *averaged* over workers.

    Parameters
    ----------
    proportions, sizes, noise_variance, prior, task
        As for `BagBatch`, of this worker's bags; there may be none.
    """

    def total(self, values: Tensor) -> Tensor:
        """Sum per-bag values over the bags of all workers."""
        return sum_over(super().total(values))

    @cached_property
    def n_bags_in_all(self) -> int:
        """Number of bags on all workers."""
        count = torch.tensor(self.n_bags, device=self.proportions.device)
        dist.all_reduce(count)
        return int(count)

    @cached_property
    def largest_size(self) -> int:
        """Instances in the largest bag of any worker."""
        sizes = torch.as_tensor(self.sizes, device=self.proportions.device).reshape(-1)
        largest = sizes.max() if len(sizes) else sizes.new_zeros(())
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        return int(largest)


@dataclass(frozen=True)
class ShardedBatch(Batch):
    """One worker's part of a minibatch.

    Attributes
    ----------
    slots : Tensor of shape (n_instances,)
        Where its instances stand in the whole batch.
    """

    slots: Tensor

    def bags(self, trials: slice, prior: Tensor, task: Task) -> BagBatch:
        """What the rule sees."""
        whole = super().bags(trials, prior, task)
        return ShardedBagBatch(
            whole.proportions, whole.sizes, whole.noise_variance, whole.prior, task
        )


@dataclass(frozen=True, eq=False)
class Shard:
    """One worker's bags, and its place among the others.

    Attributes
    ----------
    bags : Bags
        This worker's.
    table : Bags
        Sizes, proportions and noise of all workers' bags, in order of rank, without instances:
        its rows count the instances of all workers.
    first : int
        Number of this worker's first instance in that count.
    """

    bags: Bags
    table: Bags
    first: int

    def cut(self, data: TrialData, number: int, device: torch.device) -> ShardedBatch:
        """This worker's part of a batch of `table`."""
        positions, table = data.batches[number], data.bags
        mine = self._holds(table.rows[table.starts[positions]])
        own, sizes = positions[mine], table.sizes[positions]
        noise = None if table.noise_variance is None else _floats(table.noise_variance[own], device)
        equal = bool((sizes == sizes[0]).all())
        rows = self.bags.rows[table.rows_of(own) - self.first]
        return ShardedBatch(
            torch.tensor(rows[None], device=device),
            _floats(table.proportions[own], device),
            noise,
            int(sizes[0]) if equal else torch.tensor(table.sizes[own], device=device),
            torch.tensor(np.flatnonzero(np.repeat(mine, sizes)), device=device),
        )

    def rows(self, instances: Array) -> Array:
        """Rows of this worker's `X`, of those instances in the common count that it holds."""
        return self.bags.rows[instances[self._holds(instances)] - self.first]

    def _holds(self, instances: Array) -> Array:
        return (instances >= self.first) & (instances < self.first + self.bags.n_instances)


def _floats(values: Array, device: torch.device) -> Tensor:
    """With a trial axis of one."""
    return torch.tensor(values[None], dtype=torch.float32, device=device)


def shard_bags(bags: Bags, rank: int, n_workers: int) -> Bags:
    """Whole bags for one worker, with about as many instances as the others.

    Workers' bags follow one another in the order of `bags`.

    Examples
    --------
    >>> bags = Bags.from_arrays(np.zeros((6, 1)), bags=[0, 0, 0, 1, 1, 2], y=[0, 0, 0, 1, 1, 0])
    >>> [shard_bags(bags, rank, 2).ids for rank in range(2)]
    [[0], [1, 2]]
    """
    if n_workers > bags.n_bags:
        raise BagDataError(
            f"n_workers must not exceed the {bags.n_bags} bags, because bags stay whole, "
            f"got {n_workers}."
        )
    middles = np.cumsum(bags.sizes) - bags.sizes / 2
    worker = (middles * n_workers / bags.n_instances).astype(int)
    if len(np.unique(worker)) < n_workers:  # some bag outweighs a worker's share
        worker = np.arange(bags.n_bags) * n_workers // bags.n_bags
    return bags.take(np.flatnonzero(worker == rank))


def gather_shards(bags: Bags) -> Shard:
    """Tell all workers about each other's bags; instances stay where they are."""
    mine = (bags.sizes, bags.proportions, bags.noise_variance, bags.task)
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, mine)
    sizes, proportions, noises, tasks = zip(*parts, strict=True)
    if len(set(tasks)) > 1:
        raise BagDataError(f"bags must have one task on all workers, got {sorted(set(tasks))}.")
    joined = np.concatenate(sizes)
    noise = _joined_noise(noises, sizes)
    rows = np.arange(joined.sum())
    ids: list[Hashable] = list(range(len(joined)))
    table = Bags(bags.X, rows, joined, np.concatenate(proportions), ids, noise, bags.task)
    before = sum(int(size.sum()) for size in sizes[: dist.get_rank()])
    return Shard(bags, table, before)


def _joined_noise(noises: Sequence[Array | None], sizes: Sequence[Array]) -> Array | None:
    """All workers' noise: those who have none have exact proportions; None if nobody has any."""
    if all(noise is None for noise in noises):
        return None
    pairs = zip(noises, sizes, strict=True)
    return np.concatenate([np.zeros(len(s)) if noise is None else noise for noise, s in pairs])
