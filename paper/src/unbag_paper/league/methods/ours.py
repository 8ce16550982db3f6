"""Ours: strong views learn the tilted posterior of weak ones; from scratch, or from a start."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from unbag.estimators.image import start_posteriors
from unbag.images import (
    Consistency,
    ConsistencySettings,
    ImageBatch,
    image_features,
    pixel_components,
)
from unbag.images.loop import Learner
from unbag_paper.league.methods.base import Method, Start

__all__ = ["Ours", "OursFromStart"]


@dataclass(eq=False)
class Ours(Method):
    """`unbag.images.Consistency`, from the proportions of each image's bag.

    Parameters
    ----------
    weight, memory, mixup, hard, hold
        As for `ConsistencySettings`.
    """

    name, label, reference = "ours", "ours, from proportions", ""
    weight: float = 1.0
    memory: float = 0.7
    mixup: float = 0.5
    hard: bool = False
    hold: float = 0.0

    def begin(self, start: Start) -> None:
        """First predictions."""
        self.consistency = Consistency(self._first(start), ConsistencySettings(**asdict(self)))

    def _first(self, start: Start) -> Tensor:
        bags = start.data.bags
        return bags.spread(bags.targets)

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Proportions plus consistency."""
        return self.consistency(net, batch)


@dataclass(eq=False)
class OursFromStart(Ours):
    """The same after a contrastive start, ridge and propagation: all of `BagImageClassifier`."""

    name, label = "ours_start", "ours"
    needs_start = True
    hard: bool = True
    hold: float = 0.1

    def _first(self, start: Start) -> Tensor:
        images = start.data.images
        candidates = [image_features(start.net, images), pixel_components(images)]
        start.net.train()
        return start_posteriors(candidates, start.data.bags).to(torch.float32)
