"""Training of nets on whole bags of images: batches, views and descent, whatever the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from unbag.bags.batch import BagBatch
from unbag.images.optimization import Average, Optimization, as_floats, seeded_generator
from unbag.images.views import strong_view, weak_view
from unbag.training.progress import progress_bar

__all__ = ["ImageBags", "ImageBatch", "LoopSettings", "Objective", "train_on_bags"]


@dataclass(frozen=True)
class LoopSettings:
    """How nets are trained, whatever the loss.

    Attributes
    ----------
    n_epochs : int
        Passes over the bags.
    images_per_batch : int
        Whole bags are taken until there are so many.
    learning_rate, weight_decay : float
        Of stochastic gradient descent with momentum.
    average_decay : float
        Of the averaged weights that predict.
    compile : bool
        Whether `torch.compile` translates the net first.
    """

    n_epochs: int = 200
    images_per_batch: int = 1024
    learning_rate: float = 0.03
    weight_decay: float = 5e-4
    average_decay: float = 0.999
    compile: bool = False


@dataclass(frozen=True)
class ImageBags:
    """Images, bag by bag, and the proportions of classes in each bag.

    Attributes
    ----------
    images : Tensor of shape (n, channels, height, width)
        Bytes, or floats in [0, 1].
    bags : BagBatch
        All bags, of a multiclass task.
    """

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
    """What a loss may look at in one step.

    Attributes
    ----------
    images : Tensor of shape (n, channels, height, width)
        As floats, bag by bag.
    bags : BagBatch
    rows : Tensor of shape (n,)
        Positions of the images among all.
    done : float
        Share of the training that is behind.
    generator : torch.Generator
    flip : bool
        Whether a view may be mirrored.
    """

    images: Tensor
    bags: BagBatch
    rows: Tensor
    done: float
    generator: torch.Generator
    flip: bool

    @cached_property
    def weak(self) -> Tensor:
        """Shifted and mirrored; the same for every net."""
        return weak_view(self.images, self.generator, flip=self.flip)

    def strong(self) -> Tensor:
        """Turned, recoloured, in part greyed out; another view at each call."""
        return strong_view(self.images, self.generator, flip=self.flip)


Forward = Callable[[Tensor], Tensor]
"""Logits of images in single precision, from a net in training."""

Objective = Callable[[Forward, ImageBatch, int], Tensor]
"""The loss of a net on a batch; the number says which of the nets it is."""


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
    """Train nets in place, and return their averages.

    Parameters
    ----------
    nets : sequence of nn.Module
        On the device of the images.
    data : ImageBags
    objective : Objective
    settings : LoopSettings
    flip : bool
        Whether an image may be mirrored.
    seed : int
        Of batches and views.
    progress : bool
        Whether to show a bar.
    after_epoch : function, optional
        Called with the averaged nets.
    """
    generator = seeded_generator(data.images.device, seed, "consistency")
    n_batches = max(1, min(data.bags.n_bags, len(data.images) // settings.images_per_batch))
    n_steps = settings.n_epochs * n_batches
    learners = [_Learner(net, settings, n_steps) for net in nets]
    averages = [learner.average.net for learner in learners]
    with progress_bar("training on bags", settings.n_epochs, show=progress) as tick:
        for epoch in range(settings.n_epochs):
            for step, chosen in enumerate(_batches(data, n_batches, generator)):
                rows, bags = data.take(chosen)
                done = (epoch * n_batches + step) / n_steps
                x = as_floats(data.images[rows])
                batch = ImageBatch(x, bags, rows, done, generator, flip)
                for number, learner in enumerate(learners):
                    learner.step(objective(learner.forward, batch, number))
            if after_epoch is not None:
                after_epoch(averages)
            tick(lambda: f"loss {learners[0].optimization.last_loss:.3f}")
    return averages


def _batches(data: ImageBags, n_batches: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Bags in random order, cut into batches of equally many; a rest waits for another epoch."""
    device = data.images.device
    order = torch.randperm(data.bags.n_bags, device=device, generator=generator)
    per_batch = len(order) // n_batches
    yield from order[: per_batch * n_batches].split(per_batch)


class _Learner:
    """A net, its descent and its averaged weights."""

    def __init__(self, net: nn.Module, settings: LoopSettings, n_steps: int) -> None:
        self.net = net.train()
        self.call: Forward = torch.compile(net) if settings.compile else net
        self.optimization = Optimization(
            net, settings.learning_rate, settings.weight_decay, n_steps
        )
        self.average = Average(net, settings.average_decay)

    def forward(self, x: Tensor) -> Tensor:
        """Logits in single precision."""
        with self.optimization.precision():
            return self.call(x).float()

    def step(self, loss: Tensor) -> None:
        """Move the weights once, and their average after them."""
        self.optimization.step(loss)
        self.average.update(self.net)
