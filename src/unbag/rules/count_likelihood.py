"""The likelihood of each bag's count, for labels that are independent given the features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unbag.bags.batch import BagBatch
from unbag.posterior.labels import enough_frequencies
from unbag.rules.base import InstanceLoss, Rule

SURE = 1e4


@dataclass(frozen=True)
class CountLikelihood(Rule):
    r"""Minus the log likelihood of each bag's count under the Poisson-binomial law of its scores.

    .. math:: \hat L = \mathrm{mean}_i \left[ -\log P\Big( \sum_j Y_{ij} = k_i a_i \Big) \right],
              \qquad Y_{ij} \sim \mathrm{Bernoulli}(f_{ij}) \text{ independent}

    Parameters
    ----------
    exact_up_to : int
        Largest bag size for which the probability is computed exactly. Larger bags use a
        saddlepoint approximation, which is rough when nearly all labels are certain.

    Notes
    -----
    Adding one number :math:`\theta` to all logits of a bag (tilting) changes the probability of
    its count by a known factor. The rule chooses the :math:`\theta` for which the expected count
    equals the observed one. The tilted probability is then never small, and one coefficient of a
    discrete Fourier transform gives it to full precision. About :math:`\sqrt{k}` frequencies are
    enough, because other counts are then much less likely.

    A count that is not an integer is rounded. With noise of known variance, the count is modelled
    as Gaussian with the sum of both variances. For several classes this is a composite
    likelihood: the sum of the log likelihoods of the classes' counts.

    Examples
    --------
    >>> CountLikelihood()(torch.zeros(4), BagBatch(torch.tensor([0.5, 0.5]), 2))
    tensor(0.6931)
    """

    name: ClassVar[str] = "count_likelihood"
    paper_name: ClassVar[str] = "new"
    instance_loss: ClassVar[InstanceLoss] = "log"
    use_when: ClassVar[str] = (
        "Labels are independent given the features, whether or not bags are random; linear models. "
        "A step costs several times as much as with the other rules."
    )

    exact_up_to: int = 1000

    @classmethod
    def variants(cls) -> tuple[Rule, ...]:
        """The exact form, and the Gaussian approximation for large bags."""
        return (cls(), cls(exact_up_to=0))

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the mean negative log likelihood, in double precision throughout."""
        minus_log = self.of_each_bag(own_logits(logits, batch), batch)
        if batch.task == "multiclass" and batch.targets.shape[-1] == 2:
            minus_log = minus_log / 2  # both classes have the same count
        return batch.average(minus_log).to(batch.outputs(logits).dtype)

    def of_each_bag(self, outputs: Tensor, batch: BagBatch) -> Tensor:
        """Minus log likelihood of each bag's count of each output, given `own_logits`."""
        counts = batch.bag_sizes.double() * batch.targets.double()
        if batch.noise_variance is not None:
            return _noisy_gaussian(outputs, counts, batch)
        return -self._log_probability(outputs, counts.round(), batch)

    def _log_probability(self, outputs: Tensor, counts: Tensor, batch: BagBatch) -> Tensor:
        if batch.largest_size <= self.exact_up_to:
            return _log_probability(outputs, counts, batch, exact=True)
        # Bags of one size are of one kind, so nothing is read from the device.
        if isinstance(batch.sizes, int) or not (small := batch.sizes <= self.exact_up_to).any():
            return _log_probability(outputs, counts, batch, exact=False)
        parts = []
        for exact, kind in ((True, small), (False, ~small)):
            rows = outputs[..., kind[batch.bag_of_instance], :]
            bags = BagBatch(batch.targets[..., kind, :], batch.sizes[kind], task="multilabel")
            parts.append(_log_probability(rows, counts[..., kind, :], bags, exact=exact))
        order = torch.cat([small.nonzero(), (~small).nonzero()]).flatten()
        return torch.cat(parts, dim=-2).index_select(-2, order.argsort())


def _log_probability(outputs: Tensor, counts: Tensor, batch: BagBatch, *, exact: bool) -> Tensor:
    sizes = batch.bag_sizes.double()
    inside = (counts > 0) & (counts < sizes)
    # The two extreme counts have a closed form and no finite tilt.
    extreme = torch.where(
        counts <= 0, batch.sum(logsigmoid(-outputs)), batch.sum(logsigmoid(outputs))
    )
    safe = torch.where(inside, counts, sizes / 2)
    tilt = _tilt_to_mean(outputs.detach(), safe, batch, exact=exact)
    law = _exact_log_mass if exact else _gaussian_log_mass
    return torch.where(inside, law(outputs, safe, tilt, batch), extreme)


def own_logits(logits: Tensor, batch: BagBatch) -> Tensor:
    """Logit of each output's probability, with an output axis and in double precision."""
    outputs = batch.outputs(logits).double()
    # Beyond this a label is as good as certain, and differences of infinities are no numbers.
    outputs = torch.nan_to_num(outputs, torch.nan, posinf=SURE, neginf=-SURE)
    if batch.task != "multiclass":
        return outputs
    log_scores = outputs.log_softmax(dim=-1)
    n_classes = outputs.shape[-1]
    others = log_scores.unsqueeze(-2).expand(*outputs.shape, n_classes)
    own = torch.eye(n_classes, dtype=torch.bool, device=outputs.device)
    return log_scores - others.masked_fill(own, -torch.inf).logsumexp(dim=-1)


def _tilt_to_mean(outputs: Tensor, counts: Tensor, batch: BagBatch, *, exact: bool) -> Tensor:
    """Find the shift of the logits for which the expected count is `counts`.

    Newton's method starts from the shift that is correct for equal scores, and falls back to
    bisection when a step would leave the bracket. When all frequencies are used, the exact
    probability depends on the shift only through rounding, so a rough shift is enough.
    """
    rough = exact and enough_frequencies(batch.largest_size) > batch.largest_size
    margin = batch.bag_sizes.double().log() + 1
    low = -batch.largest(outputs) - margin
    high = batch.largest(-outputs) + margin
    odds = batch.log_mean_exp(logsigmoid(outputs)) - batch.log_mean_exp(logsigmoid(-outputs))
    tilt = torch.clamp((counts / batch.bag_sizes).logit() - odds, low, high)
    for _ in range(6 if rough else 12):
        scores = (outputs + batch.spread(tilt)).sigmoid()
        excess = batch.sum(scores) - counts
        low, high = torch.where(excess > 0, low, tilt), torch.where(excess > 0, tilt, high)
        newton = tilt - excess / batch.sum(scores * (1 - scores))
        inside = (newton >= low) & (newton <= high)
        tilt = torch.where(inside, newton, (low + high) / 2)
    return tilt


def _tilting_factor(outputs: Tensor, counts: Tensor, tilt: Tensor, batch: BagBatch) -> Tensor:
    """Log of the factor by which tilting divides the probability of `counts`."""
    tilted = outputs + batch.spread(tilt)
    return batch.sum(logsigmoid(-outputs) - logsigmoid(-tilted)) - tilt * counts


def _exact_log_mass(outputs: Tensor, counts: Tensor, tilt: Tensor, batch: BagBatch) -> Tensor:
    """Invert the characteristic function of the tilted count at one point.

    The second half of the frequencies are conjugates of the first.
    """
    n_frequencies = enough_frequencies(batch.largest_size)
    angles = torch.arange(1, n_frequencies // 2 + 1, device=outputs.device, dtype=outputs.dtype)
    angles = angles * (2 * math.pi / n_frequencies)
    scores = (outputs + batch.spread(tilt)).sigmoid()
    columns = [
        _mass_of_one_output(scores[..., c : c + 1], counts[..., c : c + 1], angles, batch)
        for c in range(outputs.shape[-1])
    ]
    mass = torch.cat(columns, dim=-1) / n_frequencies
    return mass.clamp(min=1e-300).log() + _tilting_factor(outputs, counts, tilt, batch)


def _mass_of_one_output(scores: Tensor, counts: Tensor, angles: Tensor, batch: BagBatch) -> Tensor:
    log_modulus = 0.5 * torch.log1p(-4 * scores * (1 - scores) * (angles / 2).sin().square())
    phase = torch.atan2(scores * angles.sin(), 1 - scores * (1 - angles.cos()))
    terms = batch.sum(log_modulus).exp() * (batch.sum(phase) - angles * counts).cos()
    return 1 + 2 * terms.sum(dim=-1, keepdim=True)


def _gaussian_log_mass(outputs: Tensor, counts: Tensor, tilt: Tensor, batch: BagBatch) -> Tensor:
    """Log density of the Gaussian approximation of the tilted count, at its mean.

    The tilt is detached. One Newton step leaves its value unchanged and restores its derivative.
    """
    scores = (outputs + batch.spread(tilt)).sigmoid()
    curvature = batch.sum((scores * (1 - scores)).detach()).clamp(min=1e-12)
    tilt = tilt - (batch.sum(scores) - counts) / curvature
    scores = (outputs + batch.spread(tilt)).sigmoid()
    variance = batch.sum(scores * (1 - scores))
    # A probability on the integers is at most one, whatever the variance.
    log_mass = -0.5 * (2 * math.pi * variance).clamp(min=1.0).log()
    return log_mass + _tilting_factor(outputs, counts, tilt, batch)


def _noisy_gaussian(outputs: Tensor, counts: Tensor, batch: BagBatch) -> Tensor:
    scores = outputs.sigmoid()
    noise = batch.bag_sizes.double().square() * batch.noise.double()
    variance = (batch.sum(scores * (1 - scores)) + noise).clamp(min=1 / 12)
    gap = batch.sum(scores) - counts
    return 0.5 * ((2 * math.pi * variance).log() + gap.square() / variance)
