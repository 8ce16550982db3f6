"""PVC: the likelihood of each class's count, with one sigmoid a class."""

from dataclasses import dataclass, replace

from torch import Tensor

from unbag.images import ImageBatch
from unbag.images.loop import Learner
from unbag.rules import CountLikelihood
from unbag_paper.league.methods.base import Method

__all__ = ["Pvc"]


@dataclass(eq=False)
class Pvc(Method):
    """Poisson-binomial law of the sigmoids of each class; the largest logit predicts.

    Exact for bags of up to 1000, as in `CountLikelihood`. The loss is divided by the bag's size.
    """

    name, label, reference = "pvc", "PVC", "ma2026pvc"

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Minus the log likelihood of all counts, for each image."""
        bags = replace(batch.bags, task="multilabel")
        return CountLikelihood()(net(batch.weak), bags) / bags.largest_size
