"""Several models as one net: the mean of logits, or a blend with linear models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class AveragedNet(nn.Module):
    """Average the logits of several nets, which depend on their initial weights if bags are few."""

    def __init__(self, nets: Iterable[nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, x: Tensor) -> Tensor:
        """Mean of the logits."""
        return torch.stack([net(x) for net in self.nets]).mean(dim=0)


class LinearScores(nn.Module):
    """Scores of a linear model on the outputs of `units`, clipped to [0, 1].

    Those of classes are divided by their sum; amounts are not clipped.
    """

    def __init__(self, units: nn.Module, linear: nn.Module, *, task: str = "binary") -> None:
        super().__init__()
        self.units, self.linear, self.task = units, linear, task

    def forward(self, x: Tensor) -> Tensor:
        """Scores, or amounts."""
        scores = self.linear(self.units(x))
        if self.task == "amount":
            return scores
        scores = scores.clamp(0, 1)
        if self.task != "multiclass":
            return scores
        return scores / scores.sum(dim=-1, keepdim=True).clamp(min=1e-6)


class BlendedNet(nn.Module):
    r"""Mix the probabilities of a net with the scores of other models.

    .. math:: \textstyle\sum_m w_m \, s_m(x) + w \, p(x),

    returned as logits, or as amounts. `weights` are those of the models, then of the net.
    """

    weights: Tensor

    def __init__(
        self, net: nn.Module, models: Iterable[nn.Module], weights: Any, *, task: str = "binary"
    ) -> None:
        super().__init__()
        self.net, self.models, self.task = net, nn.ModuleList(models), task
        self.register_buffer("weights", torch.as_tensor(weights, dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the mixture, or its amounts."""
        parts = [*(model(x) for model in self.models), self._scores(self.net(x))]
        mixed = torch.tensordot(self.weights, torch.stack(parts), dims=1)
        if self.task == "amount":
            return mixed
        return mixed.clamp(min=1e-6).log() if self.task == "multiclass" else mixed.logit(eps=1e-6)

    def _scores(self, outputs: Tensor) -> Tensor:
        if self.task == "amount":
            return outputs
        return outputs.softmax(dim=-1) if self.task == "multiclass" else outputs.sigmoid()
