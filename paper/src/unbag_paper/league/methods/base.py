"""What a method of the league is: a loss of whole bags of images, and what it prepares for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from unbag.images import ImageBags, ImageBatch
from unbag.images.loop import Learner
from unbag.rules import ProportionLog, Rule

__all__ = ["Method", "RuleMethod", "Start", "cross_entropy"]


@dataclass(frozen=True)
class Start:
    """What a method finds before its first step.

    Attributes
    ----------
    net : nn.Module
        With first weights, or those of the contrastive start for methods that ask for one.
    data : ImageBags
        Bags to train on.
    """

    net: nn.Module
    data: ImageBags


class Method:
    """A way to learn from bags of images.

    Subclasses are dataclasses whose fields are the options. They state where they come from and
    what they need, and give a loss.
    """

    name: ClassVar[str]
    """Name in the registry."""
    label: ClassVar[str]
    """What tables call it."""
    reference: ClassVar[str]
    """Key of the paper in references.bib; "" for ours."""
    needs_start: ClassVar[bool] = False
    """Whether the net is trained contrastively first."""

    proportions: ClassVar[ProportionLog] = ProportionLog()

    def begin(self, start: Start) -> None:
        """Prepare what lasts for the whole training; most methods need nothing."""

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """The loss of one batch."""
        raise NotImplementedError

    def __call__(self, net: Learner, batch: ImageBatch, number: int = 0) -> Tensor:
        """The loss, as `train_on_bags` asks for it."""
        return self.loss(net, batch)


class RuleMethod(Method):
    """A learning rule of the library on the weak view."""

    rule: ClassVar[Rule]

    def begin(self, start: Start) -> None:
        """Take the prior from all bags."""
        self.prior = start.data.bags.label_prior.squeeze(-2)
        self.state: Tensor | None = None

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """The rule's loss; a moving average is kept from step to step."""
        bags = replace(batch.bags, prior=self.prior)
        loss, self.state = self.rule.step(net(batch.weak), bags, self.state)
        return loss


def cross_entropy(logits: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean over images of the weighted cross entropy; targets are class numbers or shares."""
    each = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    return each.mean() if weights is None else (weights * each).mean()
