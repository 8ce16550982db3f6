"""Ours with a teacher: the averaged net predicts the weak views, so that one view is trained on."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unbag.images import Consistency, ImageBatch
from unbag.images.loop import Learner
from unbag_paper.league.methods.ours import OursFromStart

__all__ = ["OursTaught"]


class TaughtConsistency(Consistency):
    r"""Labels of tilted posteriors of the averaged net, and proportions, on strong views alone.

    Targets :math:`t` of a bag add up to its counts, also after mixing pairs of images. So both
    terms are of the strong views: cross entropy of single targets, and of their mean.
    """

    def __call__(self, net: Learner, batch: ImageBatch, number: int = 0) -> Tensor:
        """The loss; predictions of the averaged net are kept."""
        strong, mix = self._mixing(batch)
        if batch.done >= self.settings.hold:
            self._ask_teacher(net, batch, number)
        shares = mix(batch.bags.spread(batch.bags.targets))
        targets, logits = mix(self._target(number, batch)), net(strong)
        single = -(targets * logits.log_softmax(dim=1)).sum(dim=1).mean()
        wanted, found = batch.bags.mean(shares), batch.bags.mean(logits.softmax(dim=1))
        whole = -(wanted * found.clamp(min=1e-8).log()).sum(dim=1).mean()
        return whole + self.settings.weight * single

    @torch.no_grad()
    def _ask_teacher(self, net: Learner, batch: ImageBatch, number: int) -> None:
        with net.optimization.precision():
            seen = net.average(batch.weak).float().softmax(dim=1)
        own = self.predictions[number]
        own[batch.rows] = torch.lerp(seen, own[batch.rows], self.settings.memory)


@dataclass(eq=False)
class OursTaught(OursFromStart):
    """Two thirds of the cost of a step of `OursFromStart`."""

    name, label = "ours_taught", "ours, with a start and a teacher"
    hard: bool = True
    hold: float = 0.1
    kind = TaughtConsistency
