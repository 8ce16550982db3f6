"""Ours: strong views learn the tilted posterior of weak ones; from scratch, or from a start."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unbag.estimators.image import start_posteriors
from unbag.images import Consistency, ConsistencySettings, ImageBatch, image_features
from unbag.images.loop import Forward
from unbag_paper.league.methods.base import Method, Start

__all__ = ["Ours", "OursFromStart"]


@dataclass(eq=False)
class Ours(Method):
    """`unbag.images.Consistency`, as `BagImageClassifier(start_epochs=0)` trains.

    Parameters
    ----------
    weight, memory, mixup : float
        As for `ConsistencySettings`.
    """

    name, label, reference = "ours", "ours", ""
    weight: float = 1.0
    memory: float = 0.7
    mixup: float = 0.5

    def begin(self, start: Start) -> None:
        """First predictions."""
        settings = ConsistencySettings(weight=self.weight, memory=self.memory, mixup=self.mixup)
        self.consistency = Consistency(self._first(start), settings)

    def _first(self, start: Start) -> Tensor:
        bags = start.data.bags
        return bags.spread(bags.targets)

    def loss(self, net: Forward, batch: ImageBatch) -> Tensor:
        """Proportions plus consistency."""
        return self.consistency(net, batch)


@dataclass(eq=False)
class OursFromStart(Ours):
    """The same after a contrastive start, ridge and propagation: all of `BagImageClassifier`."""

    name, label = "ours_start", "ours, with a start"
    needs_start = True

    def _first(self, start: Start) -> Tensor:
        features = image_features(start.net, start.data.images)
        start.net.train()
        return start_posteriors(features, start.data.bags).to(torch.float32)
