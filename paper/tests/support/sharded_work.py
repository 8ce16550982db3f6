"""What the workers of the tests do: importable by fresh interpreters."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from tests.support import laws
from torch import nn

from unbag import Bags
from unbag.rules import RULES
from unbag.training import Trial
from unbag_paper.compiled import EngineSettings
from unbag_paper.distributed.sharding import ShardedBagBatch, gather_shards, shard_bags
from unbag_paper.distributed.training import train_sharded

EVERY_RULE = [v for rule in RULES.values() for v in rule.variants()]
# Bags of the whole batch, and how many of them the first of two workers holds.
LAYOUTS = [([3, 3, 3, 3], 1), ([1, 4, 2, 5, 3], 3), ([2, 4, 3], 0), ([3, 3], 2)]


class ForwardOnly(ShardedBagBatch):
    """What a plain `all_reduce` in the loss does: sums forwards, and not backwards."""

    def total(self, values):
        local = values.sum(dim=-2, keepdim=True)
        others = local.detach().clone()
        dist.all_reduce(others)
        return local + others - local.detach()


def problem(rule, task, sizes, seed):
    """Features, weights to differentiate by, and the whole batch."""
    generator = torch.Generator().manual_seed(seed)
    logits, _, batch = laws.random_problem(generator, sizes, task)
    X = torch.randn(len(logits), 4, generator=generator, dtype=torch.double)
    n_outputs = () if task in ("binary", "amount") else (logits.shape[-1],)
    weights = torch.randn(4, *n_outputs, generator=generator, dtype=torch.double)
    noise = 0.01 * torch.rand(len(sizes), generator=generator, dtype=torch.double)
    return X, weights.requires_grad_(), noise, batch


def loss_and_gradient(rule, X, weights, batch, steps=2):
    """Of the last of several steps, so that a moving average has moved."""
    state = None
    for _ in range(steps):
        loss, state = rule.step(X @ weights, batch, state)
    return loss.detach(), torch.autograd.grad(loss, weights)[0]


def part_of(noise, batch, n_first, kind):
    """This worker's bags, and the rows that are theirs."""
    rank = dist.get_rank()
    mine = slice(0, n_first) if rank == 0 else slice(n_first, None)
    sizes = torch.as_tensor(batch.sizes).expand(batch.n_bags)
    rows = torch.repeat_interleave(torch.arange(batch.n_bags), sizes)
    here = torch.zeros(batch.n_bags, dtype=torch.bool)
    here[mine] = True
    own = batch.sizes if isinstance(batch.sizes, int) else batch.sizes[mine]
    part = kind(batch.proportions[mine], own, noise, batch.prior, batch.task)
    return part, here[rows]


def largest_gaps(kind=ShardedBagBatch):
    """Largest difference from one process, over loss and gradient, of every rule."""
    gaps = {}
    for rule in EVERY_RULE:
        for task in rule.tasks:
            for sizes, n_first in LAYOUTS:
                gap = _gap(rule, task, sizes, n_first, kind)
                gaps[str(rule)] = max(gaps.get(str(rule), 0.0), gap)
    return gaps


def _gap(rule, task, sizes, n_first, kind):
    X, weights, noise, batch = problem(rule, task, sizes, seed=len(sizes))
    given = None if rule.name == "count_likelihood" else noise
    part, rows = part_of(None, batch, n_first, kind)
    if given is not None:
        mine = given[:n_first] if dist.get_rank() == 0 else given[n_first:]
        part = kind(part.proportions, part.sizes, mine, part.prior, part.task)
    whole = type(batch)(batch.proportions, batch.sizes, given, batch.prior, batch.task)
    wanted = loss_and_gradient(rule, X, weights, whole)
    loss, gradient = loss_and_gradient(rule, X[rows], weights, part)
    dist.all_reduce(gradient)
    gradient /= dist.get_world_size()
    return max(float((loss - wanted[0]).abs()), float((gradient - wanted[1]).abs().max()))


def unequal_bags(seed=0, n_bags=30):
    """Bags of one to six instances, with a nonlinear truth."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, size=n_bags)
    X = (5 + 3 * rng.normal(size=(sizes.sum(), 3))).astype("float32")
    labels = X[:, 0] * X[:, 1] > 25
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.add.reduceat(labels, offsets[:-1])
    return Bags.from_arrays(X, offsets=offsets, counts=counts)


SETTINGS = EngineSettings(max_epochs=4, bags_per_batch=7, redraw=True, schedule="cosine")


def own_shard(bags):
    """Uneven on purpose: the first worker has a fifth of the bags."""
    if dist.get_world_size() != 2:
        return shard_bags(bags, dist.get_rank(), dist.get_world_size())
    cut = bags.n_bags // 5
    mine = np.arange(cut) if dist.get_rank() == 0 else np.arange(cut, bags.n_bags)
    return bags.take(mine)


def train_every_rule():
    """One result a rule, with the library's tabular net: dropout, standardised features."""
    shard = own_shard(unequal_bags())
    trials = [Trial(rule, 3e-3, seed=1) for rule in EVERY_RULE]
    return [train_sharded(trial, shard, settings=SETTINGS) for trial in trials]


def noise_of_some():
    """What all know of the noise when only the second worker has any."""
    shard = own_shard(unequal_bags())
    if dist.get_rank() == 1:
        shard = replace(shard, noise_variance=np.full(shard.n_bags, 0.01))
    return gather_shards(shard).table.noise_variance


class Fragile(nn.Module):
    """A net whose second worker is killed in the middle of an epoch, the first time."""

    def __init__(self, n_features, n_outputs, flag, step):
        super().__init__()
        self.layer = nn.Linear(n_features, n_outputs)
        self.flag, self.left = flag, step

    def forward(self, x):
        self.left -= self.training
        if self.left == 0 and dist.get_rank() == 1 and not os.path.exists(self.flag):
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.layer(x)


def train_with_a_kill(folder, flag, checkpoints="states"):
    """Train with checkpoints, and note every epoch that is begun."""

    def build(shape, n_outputs):
        return Fragile(shape[0], n_outputs, flag, step=10)

    shard = own_shard(unequal_bags())
    result = train_sharded(
        Trial(seed=1), shard, model=build, settings=SETTINGS, checkpoints=Path(folder) / checkpoints
    )
    return result.history, [p.detach().numpy() for p in result.model.parameters()]


def everything(folder):
    """All that needs no kill, in one start of the workers."""
    calm = Path(folder) / "calm"
    calm.touch()  # the flag of a kill that has been
    return {
        "gaps": largest_gaps(),
        "gaps without a backward": largest_gaps(ForwardOnly),
        "noise": noise_of_some(),
        "trainings": train_every_rule(),
        "calm": train_with_a_kill(folder, calm, "calm-states"),
    }


def fail_on_the_second():
    if dist.get_rank() == 1:
        raise ValueError("a reason")
    dist.barrier()


def die():
    os.kill(os.getpid(), signal.SIGKILL)
