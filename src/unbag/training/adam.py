"""Adam with a learning rate for each trial of a stack."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-7


class StackedAdam:
    """Adam on parameters with an optional trial axis (`stacked`), each trial with its own rate.

    `torch.optim.Adam` has one rate for a whole tensor. The step count is a tensor, so that a step
    can be captured in a CUDA graph. The constants are those of the paper.
    """

    def __init__(self, parameters: list[Tensor], learning_rates: Tensor, *, stacked: bool) -> None:
        self.parameters = parameters
        self.base_rates = learning_rates
        self.rates = [
            learning_rates.clone().view(-1, *[1] * (p.ndim - 1))
            if stacked
            else learning_rates.clone().view(())
            for p in parameters
        ]
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]
        self.decays = [torch.ones((), device=learning_rates.device) for _ in BETAS]
        self.update: Callable[..., None] = adam_update

    def scale_rates(self, factor: float) -> None:
        """Set every rate to `factor` times its base, in place."""
        for rate in self.rates:
            rate.copy_((self.base_rates * factor).view(rate.shape))

    @torch.no_grad()
    def step(self, gradients: tuple[Tensor, ...]) -> None:
        """Move the parameters."""
        for decay, beta in zip(self.decays, BETAS, strict=True):
            decay.mul_(beta)
        # lr / (1 - beta_1^t) * m / (sqrt(v / (1 - beta_2^t)) + eps), with one pass less
        correction = (1 - self.decays[1]).sqrt()
        size = correction / (1 - self.decays[0])
        state = (self.parameters, self.first, self.second, self.rates)
        self.update(*state, list(gradients), size, EPSILON * correction, BETAS)


def adam_update(
    parameters: list[Tensor],
    first: list[Tensor],
    second: list[Tensor],
    rates: list[Tensor],
    gradients: list[Tensor],
    size: Tensor,
    epsilon: Tensor,
    betas: tuple[float, float],
) -> None:
    """Move parameters and both moments by one step, in place."""
    torch._foreach_lerp_(first, gradients, 1 - betas[0])
    torch._foreach_mul_(second, betas[1])
    torch._foreach_addcmul_(second, gradients, gradients, 1 - betas[1])
    denominators = torch._foreach_sqrt(second)
    torch._foreach_add_(denominators, [epsilon] * len(denominators))
    updates = torch._foreach_div(first, denominators)
    torch._foreach_mul_(updates, torch._foreach_mul(rates, size))
    torch._foreach_sub_(parameters, updates)
