"""SoftMatch with proportions: pseudo-labels weighted by how confident they are for their time."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unbag.images import ImageBatch
from unbag.images.loop import Learner
from unbag_paper.league.methods.base import Method, Start, cross_entropy

__all__ = ["SoftMatch"]


@dataclass(eq=False)
class SoftMatch(Method):
    """Proportions on the weak view, pseudo-labels of it on the strong one.

    The weight of a pseudo-label is a Gaussian of its confidence below the moving mean of all
    confidences, and one above it. Confidences are those after uniform alignment.

    Parameters
    ----------
    weight : float
    decay : float
        Of the moving averages.
    """

    name, label, reference = "softmatch", "SoftMatch + proportions", "chen2023softmatch"
    weight: float = 1.0
    decay: float = 0.999

    def begin(self, start: Start) -> None:
        """Averages begin where a net without knowledge has them."""
        targets = start.data.bags.targets
        n_classes = targets.shape[1]
        self.mean, self.variance = torch.tensor(1 / n_classes), torch.tensor(1.0)
        self.usual = targets.new_full((n_classes,), 1 / n_classes)

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Proportions plus weighted pseudo-labels."""
        weak, strong = net(torch.cat([batch.weak, batch.strong()])).chunk(2)
        with torch.no_grad():
            scores = weak.softmax(dim=1)
            weights = self._weights(scores)
        pseudo = cross_entropy(strong, scores.argmax(dim=1), weights)
        return self.proportions(weak, batch.bags) + self.weight * pseudo

    def _weights(self, scores: Tensor) -> Tensor:
        self.usual = self._moved(self.usual, scores.mean(dim=0))
        aligned = scores / self.usual
        confidence = (aligned / aligned.sum(dim=1, keepdim=True)).amax(dim=1)
        self.mean = self._moved(self.mean.to(scores), confidence.mean())
        self.variance = self._moved(self.variance.to(scores), confidence.var())
        below = (confidence - self.mean).clamp(max=0)
        # Two deviations, as its authors have it: the variance is divided by four.
        return torch.exp(-below.square() / (2 * self.variance / 4))

    def _moved(self, average: Tensor, value: Tensor) -> Tensor:
        return self.decay * average + (1 - self.decay) * value
