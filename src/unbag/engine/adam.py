"""Adam with a learning rate for each trial of a stack."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["StackedAdam"]


class StackedAdam:
    """Adam on parameters whose first axis may be trials, each with its own learning rate.

    `torch.optim.Adam` has one rate for a whole tensor, hence this one. The step count is a tensor,
    so that a step can be captured in a CUDA graph.

    Parameters
    ----------
    parameters : list of Tensor
        Leaves that require gradients.
    learning_rates : Tensor of shape (n_trials,)
    stacked : bool
        Whether the parameters have a trial axis.
    betas, epsilon
        Decay rates and the number added to the denominator, as in the paper.
    """

    def __init__(
        self,
        parameters: list[Tensor],
        learning_rates: Tensor,
        *,
        stacked: bool,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-7,
    ) -> None:
        self.parameters = parameters
        self.base_rates = learning_rates
        self.rates = [
            learning_rates.clone().view(-1, *[1] * (p.ndim - 1))
            if stacked
            else learning_rates.clone().view(())
            for p in parameters
        ]
        self.betas = betas
        self.epsilon = epsilon
        self.first = [torch.zeros_like(p) for p in parameters]
        self.second = [torch.zeros_like(p) for p in parameters]
        self.decays = [torch.ones((), device=learning_rates.device) for _ in betas]

    def scale_rates(self, factor: float) -> None:
        """Set every rate to `factor` times its base, in place."""
        for rate in self.rates:
            rate.copy_((self.base_rates * factor).view(rate.shape))

    @torch.no_grad()
    def step(self, gradients: tuple[Tensor, ...]) -> None:
        """Move the parameters."""
        beta_1, beta_2 = self.betas
        for decay, beta in zip(self.decays, self.betas, strict=True):
            decay.mul_(beta)
        torch._foreach_lerp_(self.first, gradients, 1 - beta_1)
        torch._foreach_mul_(self.second, beta_2)
        torch._foreach_addcmul_(self.second, gradients, gradients, 1 - beta_2)
        # lr / (1 - beta_1^t) * m / (sqrt(v / (1 - beta_2^t)) + eps), with one pass less
        correction = (1 - self.decays[1]).sqrt()
        size = correction / (1 - self.decays[0])
        denominators = torch._foreach_sqrt(self.second)
        torch._foreach_add_(denominators, [self.epsilon * correction] * len(denominators))
        updates = torch._foreach_div(self.first, denominators)
        torch._foreach_mul_(updates, torch._foreach_mul(self.rates, size))
        torch._foreach_sub_(self.parameters, updates)
