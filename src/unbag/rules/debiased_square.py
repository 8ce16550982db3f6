"""The debiased square loss: the paper's two forms and an exactly unbiased one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unbag.arguments import check_choice
from unbag.bags.batch import BagBatch, Task
from unbag.rules.base import InstanceLoss, Rule


@dataclass(frozen=True)
class DebiasedSquare(Rule):
    r"""Square loss on bag means, with the bias of averaging removed.

    Let :math:`r_i` be the mean score of bag :math:`i` minus its proportion, :math:`k_i` its size,
    :math:`N = \sum k_i`. With :math:`\bar r = \sum k_i r_i / N` and
    :math:`S^2 = \sum k_i (r_i - \bar r)^2 / (n - 1)`, the default estimates the instance risk by

    .. math:: \hat R = \bar r^2 + (1 - 1/N) \, S^2 .

    For equal bags this is
    :math:`k \, \mathrm{mean}_i(r_i^2) - (k-1) \, \mathrm{mean}_{i \neq j}(r_i r_j)`.

    Parameters
    ----------
    debias : {"pairwise", "batch", "moving"}
        How the squared mean residual :math:`B = (E f - p)^2` is estimated. "pairwise" uses pairs of
        distinct bags. "batch" uses the squared mean residual of the batch; this is the paper's rule
        when the batch is the whole data set. "moving" uses a moving average of the mean score and
        the prior; this is the paper's rule for minibatches, called DSQ in its tables.
    beta : float
        Weight of past batches in the moving average.

    Notes
    -----
    "pairwise" is unbiased for the instance square loss when instances are i.i.d. This holds for
    equal and unequal bags and for any known noise variance. It needs no prior and no state, and it
    is never negative when proportions are exact. Since :math:`\mathrm{Var}(r_i) = (R - B)/k_i`,
    weighting by size has the least variance when residuals are normal. "batch" has a bias of order
    1/n. "moving" is biased by the lag of the average; its gradient flows only through the current
    batch's part of the average.

    References
    ----------
    li2024optimistic, chen2023learning

    Examples
    --------
    >>> batch = BagBatch(torch.full((3,), 0.5), 4)
    >>> DebiasedSquare()(torch.zeros(12), batch)
    tensor(0.)
    """

    name: ClassVar[str] = "debiased_square"
    paper_name: ClassVar[str] = "DSQ"
    instance_loss: ClassVar[InstanceLoss] = "square"
    tasks: ClassVar[tuple[Task, ...]] = (*Rule.tasks, "amount")
    use_when: ClassVar[str] = (
        "The default. Bags are random groups, of equal or unequal size, with exact proportions or "
        "noise of known variance."
    )

    debias: Literal["pairwise", "batch", "moving"] = "pairwise"
    beta: float = 0.99

    def __post_init__(self) -> None:
        check_choice("debias", self.debias, ("pairwise", "batch", "moving"))
        if not 0 <= self.beta <= 1:
            raise ValueError(f"beta must lie in [0, 1], got {self.beta}.")

    @classmethod
    def variants(cls) -> tuple[Rule, ...]:
        """The three ways of removing the bias."""
        return (cls(), cls(debias="batch"), cls(debias="moving"))

    @property
    def semi_gradient(self) -> bool:
        """True for "moving", which holds the past's share of the average constant."""
        return self.debias == "moving" and self.beta > 0

    @property
    def unbiased(self) -> bool:
        """True for "pairwise" alone."""
        return self.debias == "pairwise"

    @property
    def lower_bound(self) -> float | None:
        """Zero, except that the lag of the moving average can push that form below any bound."""
        return None if self.debias == "moving" else 0.0

    @property
    def min_bags(self) -> int:
        """Two for "pairwise", which compares distinct bags."""
        return 2 if self.debias == "pairwise" else 1

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the debiased loss; for "moving", as in the first step."""
        return self._step(logits, batch, None)[0]

    def step(
        self, logits: Tensor, batch: BagBatch, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the loss and update the moving average; NaN in `state` means no step yet."""
        self.check(batch)
        return self._step(logits, batch, state)

    def _step(
        self, logits: Tensor, batch: BagBatch, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        residuals = batch.residuals(logits)
        if self.debias == "pairwise":
            return pairwise_risk(residuals, batch), state
        square = batch.average(batch.bag_sizes * (residuals.square() - batch.noise))
        mean_residual = _size_weighted_mean(residuals, batch)
        if self.debias == "moving":
            mean_score = mean_residual + _size_weighted_mean(batch.targets, batch)
            moved = self._moved_average(mean_score, state)
            mean_residual, state = moved - batch.label_prior, moved.detach()
        excess = batch.total(batch.bag_sizes - 1) / batch.n_bags_in_all
        return square - (excess * mean_residual.square()).sum(dim=(-1, -2)), state

    def _moved_average(self, mean_score: Tensor, state: Tensor | None) -> Tensor:
        start = mean_score.detach()
        past = start if state is None else torch.where(state.isnan(), start, state)
        return self.beta * past + (1 - self.beta) * mean_score


def pairwise_risk(residuals: Tensor, batch: BagBatch) -> Tensor:
    """Estimate the mean instance square loss from residuals (..., n_bags, n_outputs)."""
    sizes, n_instances = batch.bag_sizes, batch.total(batch.bag_sizes)
    mean = _size_weighted_mean(residuals, batch)
    variance = batch.total(sizes * (residuals - mean).square()) / (batch.n_bags_in_all - 1)
    risk = mean.square() + (1 - 1 / n_instances) * variance
    if batch.noise_variance is not None:
        risk = risk - _share_of_noise(batch)
    return risk.sum(dim=(-1, -2))


def _share_of_noise(batch: BagBatch) -> Tensor:
    """Expected contribution of independent noise in the proportions to the risk."""
    sizes, n_instances = batch.bag_sizes, batch.total(batch.bag_sizes)
    in_mean = batch.total(sizes.square() * batch.noise) / n_instances.square()
    in_spread = batch.total(sizes * (1 - sizes / n_instances) * batch.noise)
    return in_mean + (1 - 1 / n_instances) * in_spread / (batch.n_bags_in_all - 1)


def _size_weighted_mean(values: Tensor, batch: BagBatch) -> Tensor:
    return batch.total(batch.bag_sizes * values) / batch.total(batch.bag_sizes)
