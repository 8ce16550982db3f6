"""ROT: each bag's predictions are transported to its proportions, and learned as labels."""

from dataclasses import dataclass

from torch import Tensor

from unbag.images import ImageBatch
from unbag.images.loop import Learner
from unbag.posterior.classes import tilted_classes
from unbag_paper.league.methods.base import Method, cross_entropy

__all__ = ["Rot"]


@dataclass(eq=False)
class Rot(Method):
    """Proportions, and cross entropy to the likeliest class of the transport plan.

    Entropic transport with the log probabilities as gains is the tilted posterior. As in the
    released code, labels are learned on the weak view that they were made of.

    Parameters
    ----------
    proportion_weight, label_weight : float
        As in the released code of the method's later users.
    """

    name, label, reference = "rot", "ROT", "dulacarnold2019deep"
    proportion_weight: float = 2.0
    label_weight: float = 1.0

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Proportions plus transported labels."""
        logits = net(batch.weak)
        plan = tilted_classes(logits.detach(), batch.bags, tolerance=1e-3)
        bag_loss = self.proportions(logits, batch.bags)
        labels = cross_entropy(logits, plan.argmax(dim=1))
        return self.proportion_weight * bag_loss + self.label_weight * labels
