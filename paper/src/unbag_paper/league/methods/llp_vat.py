"""LLP-VAT: proportions, and predictions that do not change under the worst small disturbance."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unbag.images import ImageBatch
from unbag.images.loop import Learner
from unbag_paper.league.methods.base import Method

__all__ = ["LlpVat"]


@dataclass(eq=False)
class LlpVat(Method):
    """DLLP plus a term of virtual adversarial training, whose weight grows over the first epochs.

    Parameters
    ----------
    radius : float
        Euclidean length of the disturbance, pixels in [0, 1]; the authors' 6 is of pixels divided
        by their deviation, which is about a quarter.
    probe : float
        Length at which the direction of steepest change is found; not tiny, since products are
        rounded to bfloat16.
    weight : float
    ramp : float
        Share of the training in which the weight grows.
    """

    name, label, reference = "llp_vat", "LLP-VAT", "tsai2020vat"
    radius: float = 1.5
    probe: float = 0.5
    weight: float = 0.05
    ramp: float = 0.4

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Proportions plus consistency."""
        logits = net(batch.weak)
        worst = self._worst(net, batch, logits.detach())
        growth = min(1.0, batch.done / self.ramp)
        change = _divergence(logits.detach(), net(batch.weak + worst))
        return self.proportions(logits, batch.bags) + self.weight * growth * change

    def _worst(self, net: Learner, batch: ImageBatch, logits: Tensor) -> Tensor:
        """One step of the power method from a random direction."""
        start = torch.randn(batch.weak.shape, device=batch.weak.device, generator=batch.generator)
        direction = _unit(start).requires_grad_()
        change = _divergence(logits, net(batch.weak + self.probe * direction))
        (slope,) = torch.autograd.grad(change, direction)
        return self.radius * _unit(slope)


def _unit(values: Tensor) -> Tensor:
    return values / values.flatten(1).norm(dim=1).clamp(min=1e-12)[:, None, None, None]


def _divergence(logits: Tensor, others: Tensor) -> Tensor:
    """Mean Kullback-Leibler divergence of the second predictions from the first."""
    own = logits.log_softmax(dim=1)
    return (own.exp() * (own - others.log_softmax(dim=1))).sum(dim=1).mean()
