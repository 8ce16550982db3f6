"""Training of nets on whole bags of images: batches, views and descent, whatever the loss."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from unbag.bags.batch import BagBatch
from unbag.images.views import strong_view, weak_view
from unbag.randomness import derive_seed
from unbag.training.batches import as_inputs
from unbag.training.progress import progress_bar

WEIGHT_DECAY = 5e-4
AVERAGE_DECAY = 0.999  # of the averaged weights, which predict


@dataclass(frozen=True)
class LoopSettings:
    """Settings of `train_on_bags`."""

    n_epochs: int = 200
    images_per_batch: int = 1024
    learning_rate: float = 0.03


@dataclass(frozen=True)
class ImageBags:
    """Images (n, channels, height, width), bag by bag, and all bags of a multiclass task."""

    images: Tensor
    bags: BagBatch

    def take(self, chosen: Tensor) -> tuple[Tensor, BagBatch]:
        """Rows of some bags, and these bags."""
        shares, sizes = self.bags.proportions[chosen], self.bags.sizes
        if isinstance(sizes, int):
            within = torch.arange(sizes, device=chosen.device)
            rows = (chosen[:, None] * sizes + within).flatten()
            return rows, BagBatch(shares, sizes, task="multiclass")
        starts = sizes.cumsum(0) - sizes
        spans = zip(starts[chosen].tolist(), sizes[chosen].tolist(), strict=True)
        rows = torch.cat([torch.arange(start, start + size) for start, size in spans])
        return rows.to(chosen.device), BagBatch(shares, sizes[chosen], task="multiclass")


@dataclass(frozen=True)
class ImageBatch:
    """Bags of one step, as a loss sees them."""

    images: Tensor  # floats
    bags: BagBatch
    rows: Tensor  # positions of the images among all
    done: float  # share of the training that is behind
    generator: torch.Generator
    flip: bool  # whether a view may be mirrored

    @cached_property
    def weak(self) -> Tensor:
        """Shifted and mirrored; the same for every net."""
        return weak_view(self.images, self.generator, flip=self.flip)

    def strong(self) -> Tensor:
        """Turned, recoloured, in part greyed out; another view at each call."""
        return strong_view(self.images, self.generator, flip=self.flip)


class Learner:
    """A net, its descent, and a running average of its weights, which predicts better."""

    def __init__(self, net: nn.Module, settings: LoopSettings, n_steps: int) -> None:
        self.n_updates = 0
        self.optimization = Optimization(net, settings.learning_rate, WEIGHT_DECAY, n_steps)
        self.average = copy.deepcopy(net).eval().requires_grad_(False)
        self._pairs = _pairs_of_tensors(self.average, net)
        self.net = net.train()

    def __call__(self, x: Tensor) -> Tensor:
        """Logits of the net in training, in single precision."""
        with self.optimization.precision():
            return self.net(x).float()

    def step(self, loss: Tensor) -> None:
        """Move the weights once, and their average after them: quickly at first."""
        self.optimization.step(loss)
        self.n_updates += 1
        decay = min(AVERAGE_DECAY, self.n_updates / (self.n_updates + 10))
        with torch.no_grad():
            torch._foreach_lerp_(*self._pairs, 1 - decay)


def _pairs_of_tensors(average: nn.Module, net: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """Weights and statistics of two nets of one kind; counts of batches are left out."""
    pairs = zip(average.state_dict().values(), net.state_dict().values(), strict=True)
    means, values = zip(*((m, v) for m, v in pairs if m.is_floating_point()), strict=True)
    return list(means), list(values)


Objective = Callable[[Learner, ImageBatch, int], Tensor]
"""The loss of a learner on a batch; the number is the position of the learner."""


def train_on_bags(
    nets: Sequence[nn.Module],
    data: ImageBags,
    objective: Objective,
    *,
    settings: LoopSettings,
    flip: bool = True,
    seed: int = 0,
    progress: bool = False,
    after_epoch: Callable[[list[nn.Module]], None] | None = None,
) -> list[nn.Module]:
    """Train nets in place, and return their averages, with which `after_epoch` is called."""
    generator = seeded_generator(data.images.device, seed, "consistency")
    n_bags = data.bags.n_bags
    n_batches = max(1, min(n_bags, len(data.images) // settings.images_per_batch))
    per_batch, n_steps = n_bags // n_batches, settings.n_epochs * n_batches
    learners = [Learner(net, settings, n_steps) for net in nets]
    averages = [learner.average for learner in learners]
    with progress_bar("training on bags", settings.n_epochs, show=progress) as tick:
        for epoch in range(settings.n_epochs):
            order = torch.randperm(n_bags, device=data.images.device, generator=generator)
            # Equally many bags a batch; a rest waits for another epoch.
            for step, chosen in enumerate(order[: per_batch * n_batches].split(per_batch)):
                rows, bags = data.take(chosen)
                done = (epoch * n_batches + step) / n_steps
                x = as_inputs(data.images[rows])
                batch = ImageBatch(x, bags, rows, done, generator, flip)
                for number, learner in enumerate(learners):
                    learner.step(objective(learner, batch, number))
            if after_epoch is not None:
                after_epoch(averages)
            tick(lambda: f"loss {learners[0].optimization.last_loss:.3f}")
    return averages


class Optimization:
    """Stochastic gradient descent with momentum; the rate warms up and then falls as a cosine."""

    def __init__(
        self, model: nn.Module, learning_rate: float, weight_decay: float, n_steps: int
    ) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        matrices = [p for p in self.parameters if p.ndim > 1]
        others = [p for p in self.parameters if p.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": others},
        ]
        self.optimizer = torch.optim.SGD(groups, learning_rate, momentum=0.9, nesterov=True)
        self.learning_rate, self.n_steps, self.n_done = learning_rate, n_steps, 0
        self.device = self.parameters[0].device
        self.last_loss = torch.tensor(torch.nan)

    def precision(self) -> AbstractContextManager[object]:
        """Where products are rounded to bfloat16, if the device is a GPU."""
        if self.device.type != "cuda":
            return nullcontext()
        return torch.autocast("cuda", dtype=torch.bfloat16)

    def step(self, loss: Tensor) -> None:
        """Move the weights once."""
        warm_up = max(1, self.n_steps // 20)
        rate = min(1.0, (self.n_done + 1) / warm_up)
        rate *= 0.5 * (1 + math.cos(math.pi * self.n_done / self.n_steps))
        for group in self.optimizer.param_groups:
            group["lr"] = rate * self.learning_rate
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.n_done += 1
        self.last_loss = loss.detach()


def seeded_generator(device: torch.device, *names: object) -> torch.Generator:
    """A random stream on a device, by its names."""
    return torch.Generator(device).manual_seed(derive_seed(*names))
