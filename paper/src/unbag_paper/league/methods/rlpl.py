"""RLPL: a contrastive start, labels by transport, and MixMatch of sure and unsure ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unbag.images import ImageBatch
from unbag.images.loop import Learner
from unbag.posterior.classes import tilted_classes
from unbag_paper.league.methods.base import Method, cross_entropy

__all__ = ["Rlpl"]


@dataclass(eq=False)
class Rlpl(Method):
    """After a contrastive start: proportions alone, then labels of each bag's transport plan.

    Labels above a threshold are learned by cross entropy, the sharpened plan of the others by
    square loss, all on mixtures of pairs of strong views.

    Parameters
    ----------
    first : float
        Share of the training with proportions alone.
    threshold : float
        Probability in the plan from which a label is sure.
    unsure_weight : float
        Of the square loss; it grows over the training.
    temperature : float
        Of the sharpened plan.
    mixing : float
        Parameter of the Beta distribution of shares.

    Notes
    -----
    Written from the abstract and the description of its parts; thresholds are ours.
    """

    name, label, reference = "rlpl", "RLPL", "chen2025rlpl"
    needs_start = True
    first: float = 0.2
    threshold: float = 0.9
    unsure_weight: float = 10.0
    temperature: float = 0.5
    mixing: float = 0.75

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Proportions, and from the second stage on mixtures of labels."""
        if batch.done < self.first:
            return self.proportions(net(batch.weak), batch.bags)
        weak, strong = batch.weak, batch.strong()
        with torch.no_grad():
            logits = net(weak)
            plan = tilted_classes(logits, batch.bags, tolerance=1e-3).float()
        sure = plan.amax(dim=1) >= self.threshold
        sharp = (plan.clamp(min=1e-6).log() / self.temperature).softmax(dim=1)
        hard = torch.nn.functional.one_hot(plan.argmax(dim=1), plan.shape[1]).to(sharp)
        target = torch.where(sure[:, None], hard, sharp)
        mixed, mixed_target = self._mixed(strong, target, batch)
        of_weak, of_mixed = net(torch.cat([weak, mixed])).chunk(2)
        labels = cross_entropy(of_mixed, mixed_target, sure.float())
        square = (of_mixed.softmax(dim=1) - mixed_target).square().mean(dim=1)
        unsure = (square * (~sure).float()).mean()
        grown = self.unsure_weight * batch.done
        return self.proportions(of_weak, batch.bags) + labels + grown * unsure

    def _mixed(self, x: Tensor, target: Tensor, batch: ImageBatch) -> tuple[Tensor, Tensor]:
        """Each image with another one, and mostly itself."""
        powers = torch.rand(2, device=x.device, generator=batch.generator) ** (1 / self.mixing)
        share = (powers / powers.sum()).amax()
        other = torch.randperm(len(x), device=x.device, generator=batch.generator)
        return torch.lerp(x[other], x, share), torch.lerp(target[other], target, share)
