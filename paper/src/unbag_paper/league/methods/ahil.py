"""L2P-AHIL: pseudo-labels weighted by the entropy of the instance and of the bag's class."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unbag.images import ImageBatch
from unbag.images.consistency import certainty
from unbag.images.loop import Learner
from unbag_paper.league.methods.base import Method, cross_entropy

__all__ = ["Ahil"]


@dataclass(eq=False)
class Ahil(Method):
    r"""Proportions on the weak view, its likeliest classes on the strong one.

    A pseudo-label of class :math:`c` weighs :math:`e^{-H_j^2/5} e^{-(h_c - \log n_c)^2/5}`: with
    :math:`H_j` the entropy of its classes, :math:`h_c` that of the class over the bag's images,
    and :math:`\log n_c` what it is if the bag's :math:`n_c` images share the class.

    Parameters
    ----------
    weight : float
    width : float
        The number 5 in the bag's weight.
    """

    name, label, reference = "ahil", "L2P-AHIL", "ma2025ahil"
    weight: float = 0.5
    width: float = 5.0

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Proportions plus weighted pseudo-labels."""
        weak, strong = net(torch.cat([batch.weak, batch.strong()])).chunk(2)
        with torch.no_grad():
            scores = weak.softmax(dim=1)
            labels = scores.argmax(dim=1)
            of_bag = batch.bags.spread(self._bag_weights(scores, batch))
            weights = certainty(scores)[:, 0] * of_bag.gather(1, labels[:, None])[:, 0]
        pseudo = cross_entropy(strong, labels, weights)
        return self.proportions(weak, batch.bags) + self.weight * pseudo

    def _bag_weights(self, scores: Tensor, batch: ImageBatch) -> Tensor:
        """Weight of each class in each bag."""
        bags = batch.bags
        mass = bags.sum(scores).clamp(min=1e-12)
        # Entropy of shares s/m of a mass m: log m minus the mean of log s.
        entropy = mass.log() - bags.sum(torch.xlogy(scores, scores)) / mass
        wanted = (bags.bag_sizes * bags.targets + 1e-8).log()
        return torch.exp(-(entropy - wanted).square() / self.width)
