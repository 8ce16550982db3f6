"""Consistency training: strong views learn the posterior of the image given its bag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from unbag.images.loop import ImageBags, ImageBatch, Learner, LoopSettings, train_on_bags
from unbag.posterior.classes import tilted_classes
from unbag.rules import ProportionLog

TOLERANCE = 1e-3  # of a proportion in a target: far below the accuracy of a net


@dataclass(frozen=True)
class ConsistencySettings(LoopSettings):
    """Settings of `fine_tune`."""

    weight: float = 1.0  # of the second term
    memory: float = 0.7  # share of an image's earlier predictions in its average
    mixup: float = 0.5  # Beta parameter by which pairs of strong views are mixed, or 0
    hard: bool = True  # learn the likeliest class of a posterior, not all of its classes
    hold: float = 0.1  # share of the training in which the first probabilities are kept


class Consistency:
    r"""Loss of proportions and of posteriors.

    For each image of whole bags the loss is

    .. math:: \ell = -\sum_c a_{ic} \log \bar p_{ic}
              - \lambda \, u_j \sum_c q_{jc} \log p_c(\text{strong view of } x_j)

    with :math:`a` the bag's proportions, :math:`\bar p` its mean prediction, :math:`q` the
    posterior: averaged predictions of weak views, tilted to the bag's counts. The weight
    :math:`u_j = \exp(-H(q_j)^2 / 5)` falls with the posterior's entropy. Of several nets each
    learns from the posteriors of the others, so that none confirms its own mistakes.
    `start` are class probabilities of all images to begin with.

    References
    ----------
    sohn2020fixmatch, ma2025ahil
    """

    def __init__(self, start: Tensor, settings: ConsistencySettings, *, n_nets: int = 1) -> None:
        self.predictions = [start.clone() for _ in range(n_nets)]
        self.settings, self.proportions = settings, ProportionLog()

    def __call__(self, net: Learner, batch: ImageBatch, number: int = 0) -> Tensor:
        """The loss of one net; its predictions of the weak views are kept."""
        strong, mix = self._mixing(batch)
        of_weak, of_strong = net(torch.cat([batch.weak, strong])).chunk(2)
        own, seen = self.predictions[number], of_weak.detach().softmax(dim=1)
        if batch.done >= self.settings.hold:
            own[batch.rows] = torch.lerp(seen, own[batch.rows], self.settings.memory)
        target = mix(self._target(number, batch))
        second = (target * of_strong.log_softmax(dim=1)).sum(dim=1).mean()
        return self.proportions(of_weak, batch.bags) - self.settings.weight * second

    def _target(self, number: int, batch: ImageBatch) -> Tensor:
        """Posterior by the others' predictions, times the weight of its certainty."""
        others = [p for n, p in enumerate(self.predictions) if n != number] or self.predictions
        mean = torch.stack([predictions[batch.rows] for predictions in others]).mean(dim=0)
        posterior = tilted_classes(mean.clamp(min=1e-6).log(), batch.bags, tolerance=TOLERANCE)
        weights = certainty(posterior)
        if self.settings.hard:
            posterior = one_hot(posterior.argmax(dim=1), posterior.shape[1])
        return (posterior * weights).float()

    def _mixing(self, batch: ImageBatch) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """Strong views, mixed in pairs, and the function that mixes their targets alike."""
        x, generator = batch.strong(), batch.generator
        if not self.settings.mixup:
            return x, lambda target: target
        shares = torch.rand(2, device=x.device, generator=generator)
        # A ratio of powers of uniforms is Beta distributed, where the powers add up to at most one
        # (Jöhnk); beyond that it is close enough for mixing.
        powers = shares ** (1 / self.settings.mixup)
        share = powers[0] / powers.sum()
        other = torch.randperm(len(x), device=x.device, generator=generator)
        return torch.lerp(x[other], x, share), lambda t: torch.lerp(t[other], t, share)


def certainty(probabilities: Tensor) -> Tensor:
    """Weight of each instance, exp(-H^2 / 5) with H the entropy of its classes, shape (n, 1)."""
    entropy = -torch.xlogy(probabilities, probabilities).sum(dim=-1, keepdim=True)
    return torch.exp(-entropy.square() / 5)


def fine_tune(
    nets: Sequence[nn.Module],
    data: ImageBags,
    *,
    start: Tensor | None,
    settings: ConsistencySettings,
    **options: Any,
) -> list[nn.Module]:
    """Train nets in place by `Consistency`, and return their averages.

    Several nets teach each other. By default they start from the proportions of each image's bag.
    """
    start = data.bags.spread(data.bags.targets) if start is None else start
    objective = Consistency(start, settings, n_nets=len(nets))
    return train_on_bags(nets, data, objective, settings=settings, **options)
