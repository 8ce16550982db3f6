"""What both trainings of images share: descent, precision, averaged weights, random streams."""

from __future__ import annotations

import copy
import math
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from unbag.randomness import derive_seed

__all__ = ["Average", "Optimization", "as_floats", "seeded_generator"]


def as_floats(images: Tensor) -> Tensor:
    """Bytes as numbers in [0, 1]; floats as they are."""
    return images.float() / 255 if images.dtype == torch.uint8 else images.float()


def seeded_generator(device: torch.device, *names: object) -> torch.Generator:
    """A random stream on a device, by its names."""
    return torch.Generator(device).manual_seed(derive_seed(*names))


class Optimization:
    """Stochastic gradient descent with momentum; the rate warms up and then falls as a cosine."""

    def __init__(
        self, model: nn.Module, learning_rate: float, weight_decay: float, n_steps: int
    ) -> None:
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        groups = [
            {"params": [p for p in self.parameters if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in self.parameters if p.ndim <= 1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.SGD(groups, learning_rate, momentum=0.9, nesterov=True)
        self.learning_rate, self.n_steps, self.n_done = learning_rate, n_steps, 0
        self.device = self.parameters[0].device
        self.last_loss = torch.tensor(torch.nan)

    def precision(self) -> AbstractContextManager[object]:
        """Where products are rounded to bfloat16, if the device is a GPU."""
        if self.device.type != "cuda":
            return nullcontext()
        return torch.autocast("cuda", dtype=torch.bfloat16)

    def step(self, loss: Tensor) -> None:
        """Move the weights once."""
        warm_up = max(1, self.n_steps // 20)
        rate = min(1.0, (self.n_done + 1) / warm_up)
        rate *= 0.5 * (1 + math.cos(math.pi * self.n_done / self.n_steps))
        for group in self.optimizer.param_groups:
            group["lr"] = rate * self.learning_rate
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.n_done += 1
        self.last_loss = loss.detach()


class Average:
    """A running average of a net's weights, which predicts better than the last weights."""

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.net = copy.deepcopy(net).eval().requires_grad_(False)
        self.decay, self.n_updates = decay, 0

    @torch.no_grad()
    def update(self, net: nn.Module) -> None:
        """Move the average towards a net; quickly at first, when the average knows little."""
        self.n_updates += 1
        decay = min(self.decay, self.n_updates / (self.n_updates + 10))
        for mine, new in zip(
            self.net.state_dict().values(), net.state_dict().values(), strict=True
        ):
            if mine.is_floating_point():
                mine.lerp_(new, 1 - decay)
            else:
                mine.copy_(new)
