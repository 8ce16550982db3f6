"""MixBag: new bags from parts of two, whose proportions are known up to an interval."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unbag.images import ImageBatch
from unbag.images.loop import Learner
from unbag_paper.league.methods.base import Method

__all__ = ["MixBag"]


@dataclass(eq=False)
class MixBag(Method):
    """DLLP on the bags and, with a loss that spares an interval, on mixtures of two.

    Parameters
    ----------
    deviations : float
        Half the interval's width in standard deviations of a sampled proportion.

    Notes
    -----
    Each image enters a mixture by a coin of its own, so that bags need not be equal.
    """

    name, label, reference = "mixbag", "MixBag", "asanomi2023mixbag"
    deviations: float = 2.58

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Proportions of the bags and of their mixtures."""
        logits = net(batch.weak)
        return self.proportions(logits, batch.bags) + self._mixtures(logits.softmax(1), batch)

    def _mixtures(self, scores: Tensor, batch: ImageBatch) -> Tensor:
        bags, device = batch.bags, scores.device
        share = torch.rand(bags.n_bags, 1, device=device, generator=batch.generator)
        coins = torch.rand(len(scores), 1, device=device, generator=batch.generator)
        partner = torch.randperm(bags.n_bags, device=device, generator=batch.generator)
        own = (coins < bags.spread(share)).float()
        # The partner gives what its own share, that of the bag it joins, leaves out.
        theirs = (coins >= bags.spread(_inverse(share, partner))).float()
        n_own, n_theirs = bags.sum(own), bags.sum(theirs)[partner]
        n = (n_own + n_theirs).clamp(min=1)
        mean = (bags.sum(own * scores) + bags.sum(theirs * scores)[partner]) / n
        wanted = (n_own * bags.targets + n_theirs * bags.targets[partner]) / n
        half = self.deviations * (wanted * (1 - wanted) / n).sqrt()
        nearest = torch.clamp(mean, (wanted - half).clamp(min=0), (wanted + half).clamp(max=1))
        outside = (mean - nearest).abs() > 0
        return -(outside * nearest.detach() * mean.clamp(min=1e-7).log()).sum(dim=1).mean()


def _inverse(values: Tensor, partner: Tensor) -> Tensor:
    """The value of the bag that each bag is the partner of."""
    found = torch.empty_like(values)
    found[partner] = values
    return found
