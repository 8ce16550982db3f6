"""Train a net on bags and on its own posteriors: strong views learn what whole bags say of weak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unbag.images.optimization import Average, Optimization, as_floats, seeded_generator
from unbag.images.tilting import BagCounts, tilt
from unbag.images.views import strong_view, weak_view
from unbag.training.progress import progress_bar

__all__ = ["ConsistencySettings", "fine_tune"]


@dataclass(frozen=True)
class ConsistencySettings:
    r"""How nets are fine-tuned.

    For each image of whole bags the loss is

    .. math:: \ell = -\sum_c a_{ic} \log \bar p_{ic}
              - \lambda \, u_j \sum_c q_{jc} \log p_c(\text{strong view of } x_j)

    with :math:`a` the bag's proportions, :math:`\bar p` its mean prediction, :math:`q` the
    posterior: averaged predictions of weak views, tilted to the bag's counts. The weight
    :math:`u_j = \exp(-H(q_j)^2 / 5)` falls with the posterior's entropy.

    Attributes
    ----------
    n_epochs : int
        Passes over the bags.
    images_per_batch : int
        Whole bags are taken until there are so many.
    learning_rate, weight_decay : float
        Of stochastic gradient descent with momentum.
    weight : float
        Of the second term.
    memory : float
        Share of the earlier predictions of an image that its average keeps at each visit.
    mixup : float
        Strong views are mixed in pairs by Beta-distributed shares; 0 for no mixing.
    average_decay : float
        Of the averaged weights that predict.
    """

    n_epochs: int = 200
    images_per_batch: int = 1024
    learning_rate: float = 0.03
    weight_decay: float = 5e-4
    weight: float = 1.0
    memory: float = 0.7
    mixup: float = 0.5
    average_decay: float = 0.999


def fine_tune(
    nets: Sequence[nn.Module],
    images: Tensor,
    bags: BagCounts,
    *,
    start: Tensor | None = None,
    settings: ConsistencySettings | None = None,
    flip: bool = True,
    seed: int = 0,
    progress: bool = False,
) -> list[nn.Module]:
    """Train nets in place, and return their averages.

    Parameters
    ----------
    nets : sequence of nn.Module
        One, or several that teach each other: a net learns from the posteriors of the others, so
        that none confirms its own mistakes.
    images : Tensor of shape (n, channels, height, width)
        On the device of the nets.
    bags : BagCounts
    start : Tensor of shape (n, n_classes), optional
        Class probabilities to begin with; by default the proportions of an image's bag.
    settings : ConsistencySettings, optional
    flip, seed, progress
        As for `contrastive_start`.
    """
    settings = settings or ConsistencySettings()
    run = _FineTuning(nets, images, bags, start, settings, flip, seed)
    with progress_bar("fine-tuning", settings.n_epochs, show=progress) as tick:
        for _ in range(settings.n_epochs):
            for rows, part in run.batches():
                run.step(rows, part)
            tick(lambda: f"loss {run.learners[0].optimization.last_loss:.3f}")
    return [learner.average.net for learner in run.learners]


class _Learner:
    """A net, its descent, its averaged weights, and its averaged predictions of every image."""

    def __init__(
        self, net: nn.Module, start: Tensor, settings: ConsistencySettings, n: int
    ) -> None:
        self.net = net.train()
        args = settings.learning_rate, settings.weight_decay, n
        self.optimization = Optimization(net, *args)
        self.average = Average(net, settings.average_decay)
        self.predictions = start.clone()


class _FineTuning:
    """All that a step needs."""

    def __init__(
        self,
        nets: Sequence[nn.Module],
        images: Tensor,
        bags: BagCounts,
        start: Tensor | None,
        settings: ConsistencySettings,
        flip: bool,
        seed: int,
    ) -> None:
        self.images, self.bags, self.settings, self.flip = images, bags, settings, flip
        self.generator = seeded_generator(images.device, seed, "consistency")
        self.sizes = bags.counts.sum(dim=1)
        self.rows = bags.bag_of.argsort(stable=True)
        self.ends = torch.bincount(bags.bag_of, minlength=len(bags.counts)).cumsum(0)
        if start is None:
            start = (bags.counts / self.sizes[:, None])[bags.bag_of]
        n_steps = settings.n_epochs * self.n_batches
        self.learners = [_Learner(net, start, settings, n_steps) for net in nets]

    @property
    def n_batches(self) -> int:
        """Batches of an epoch."""
        return max(1, min(len(self.sizes), len(self.images) // self.settings.images_per_batch))

    def batches(self) -> Iterator[tuple[Tensor, BagCounts]]:
        """Rows of whole bags, in random order, and the counts of these bags."""
        device = self.images.device
        order = torch.randperm(len(self.sizes), device=device, generator=self.generator)
        for chosen in order.tensor_split(self.n_batches):
            starts = torch.where(chosen > 0, self.ends[chosen - 1], 0).tolist()
            spans = zip(starts, self.ends[chosen].tolist(), strict=True)
            rows = torch.cat([self.rows[start:end] for start, end in spans])
            yield rows, self.bags.take(chosen, rows)

    def step(self, rows: Tensor, bags: BagCounts) -> None:
        """Train every net on one batch."""
        x = as_floats(self.images[rows])
        weak = weak_view(x, self.generator, flip=self.flip)
        targets = [self._target(number, rows, bags) for number in range(len(self.learners))]
        for learner, target in zip(self.learners, targets, strict=True):
            strong, mixed = self._mixed(strong_view(x, self.generator, flip=self.flip), target)
            with learner.optimization.precision():
                logits = learner.net(torch.cat([weak, strong]))
            of_weak, of_strong = logits.float().log_softmax(dim=1).chunk(2)
            loss = bag_cross_entropy(of_weak, bags)
            learner.optimization.step(
                loss - self.settings.weight * (mixed * of_strong).sum(1).mean()
            )
            learner.average.update(learner.net)
            seen = learner.predictions[rows]
            learner.predictions[rows] = torch.lerp(
                of_weak.detach().exp(), seen, self.settings.memory
            )

    def _target(self, number: int, rows: Tensor, bags: BagCounts) -> Tensor:
        """Posterior by the others' predictions, times the weight of its certainty."""
        others = [one for n, one in enumerate(self.learners) if n != number] or self.learners
        mean = torch.stack([one.predictions[rows] for one in others]).mean(dim=0)
        posterior = tilt(mean.clamp(min=1e-6).log(), bags)
        entropy = -(posterior * posterior.clamp(min=1e-9).log()).sum(dim=1, keepdim=True)
        return posterior * torch.exp(-entropy.square() / 5)

    def _mixed(self, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if not self.settings.mixup:
            return x, target
        shares = torch.rand(2, device=x.device, generator=self.generator)
        # A ratio of powers of uniforms is Beta distributed, where the powers add up to at most one
        # (Jöhnk); beyond that it is close enough for mixing.
        powers = shares ** (1 / self.settings.mixup)
        share = powers[0] / powers.sum()
        other = torch.randperm(len(x), device=x.device, generator=self.generator)
        return torch.lerp(x[other], x, share), torch.lerp(target[other], target, share)


def bag_cross_entropy(log_probabilities: Tensor, bags: BagCounts) -> Tensor:
    """Mean over bags of the cross entropy between proportions and the bag's mean prediction.

    Examples
    --------
    >>> bags = BagCounts(torch.tensor([0, 0]), torch.tensor([[1.0, 1.0]]))
    >>> bag_cross_entropy(torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log(), bags)
    tensor(0.6931)
    """
    sizes = bags.counts.sum(dim=1, keepdim=True)
    means = bags.sums(log_probabilities.exp()) / sizes
    return -(bags.counts / sizes * means.clamp(min=1e-9).log()).sum(dim=1).mean()
