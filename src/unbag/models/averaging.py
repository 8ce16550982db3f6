"""Several models as one net: the mean of logits, or a blend with a linear model."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

__all__ = ["AveragedNet", "BlendedNet"]


class AveragedNet(nn.Module):
    """Average the logits of several nets.

    Nets from few bags depend much on their initial weights; their average depends less.

    Parameters
    ----------
    nets : iterable of torch.nn.Module

    Examples
    --------
    >>> AveragedNet([nn.Identity(), nn.Flatten()])(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    def __init__(self, nets: Iterable[nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, x: Tensor) -> Tensor:
        """Mean of the logits."""
        return torch.stack([net(x) for net in self.nets]).mean(dim=0)


class BlendedNet(nn.Module):
    r"""Mix the probabilities of a net with the scores of a linear model.

    .. math:: w \, p(x) + (1 - w) \, \mathrm{clip}(W x + b, 0, 1),

    given as logits. Amounts are mixed as they are, :math:`w \, f(x) + (1 - w) (W x + b)`.

    Parameters
    ----------
    net : torch.nn.Module
        Gives logits.
    linear : torch.nn.Linear
        Gives scores.
    weight : float
        Weight :math:`w` of the net.
    task : {"binary", "multiclass", "multilabel", "amount"}
        What the outputs are of.

    Examples
    --------
    >>> half = nn.Linear(1, 1)
    >>> _ = nn.init.zeros_(half.weight), nn.init.constant_(half.bias, 0.5)
    >>> BlendedNet(nn.Identity(), half, 0.5)(torch.zeros(1, 1)).item()
    0.0
    """

    weight: Tensor

    def __init__(
        self, net: nn.Module, linear: nn.Linear, weight: float, *, task: str = "binary"
    ) -> None:
        super().__init__()
        self.net, self.linear, self.task = net, linear, task
        self.register_buffer("weight", torch.tensor(float(weight)))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the mixture, or its amounts."""
        if self.task == "amount":
            return torch.lerp(self.linear(x), self.net(x), self.weight)
        scores = self.linear(x).clamp(0, 1)
        if self.task != "multiclass":
            mixed = torch.lerp(scores, self.net(x).sigmoid(), self.weight)
            return mixed.logit(eps=1e-6)
        scores = scores / scores.sum(dim=-1, keepdim=True).clamp(min=1e-6)
        return torch.lerp(scores, self.net(x).softmax(dim=-1), self.weight).clamp(min=1e-6).log()
