"""EasyLLP: reweight the two possible instance losses so that their bag average is unbiased."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unbag.arguments import check_choice
from unbag.bags.batch import BagBatch, Task
from unbag.rules.base import InstanceLoss, Rule


@dataclass(frozen=True)
class _Easy(Rule):
    lower_bound = None  # the weights can be negative

    prior: Literal["plug_in", "split"] = "plug_in"

    def __post_init__(self) -> None:
        check_choice("prior", self.prior, ("plug_in", "split"))

    @classmethod
    def variants(cls) -> tuple[Rule, ...]:
        """The prior estimated from the same bags, and from half of them."""
        return (cls(), cls(prior="split"))

    @property
    def unbiased(self) -> bool:
        """Whether the prior comes from other bags: the loss is linear in it, so its mean counts."""
        return self.prior == "split" and self.unbiased_given_prior

    @property
    def unbiased_given_prior(self) -> bool:
        """True, as the paper shows."""
        return True

    @property
    def min_bags(self) -> int:
        """Two when the batch itself must be split."""
        return 2 if self.prior == "split" else 1

    @property
    def prior_share(self) -> float:
        """One half with sample splitting, as in the paper."""
        return 0.5 if self.prior == "split" else 0.0

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the reweighted loss; with "split", on half of the bags."""
        if self.prior == "split" and batch.prior is None:
            logits, batch = _split_for_prior(logits, batch)
        losses = self._losses_of_each_label(batch.outputs(logits), batch.task)
        return batch.average(_label_weights(batch) * batch.mean(losses))

    @abstractmethod
    def _losses_of_each_label(self, outputs: Tensor, task: Task) -> Tensor:
        """Loss for each possible label: one column per class, or positives then negatives."""


@dataclass(frozen=True)
class EasySquare(_Easy):
    r"""EasyLLP with the square loss (EZ.Sq).

    .. math:: \hat L = \mathrm{mean}_i \left[ (k(a_i - p) + p) \, \mathrm{mean}_j \ell(1, f_{ij})
              + (k(p - a_i) + 1 - p) \, \mathrm{mean}_j \ell(0, f_{ij}) \right]

    Parameters
    ----------
    prior : {"plug_in", "split"}
        How :math:`p` is estimated when the batch has no prior: from the same bags, or from one half
        of them while the loss is computed on the other half.

    Notes
    -----
    Unbiased for the instance loss when :math:`p` is known or estimated on other bags, biased by a
    term of order 1/n when it is estimated on the same n bags, as by default. Its variance does not
    vanish with the risk, and it is not bounded below.

    References
    ----------
    busafekete2023easy, li2024optimistic

    Examples
    --------
    >>> EasySquare()(torch.zeros(4), BagBatch(torch.tensor([0.5, 1.0]), 2))
    tensor(0.2500)
    """

    name: ClassVar[str] = "easy_square"
    paper_name: ClassVar[str] = "EZ.Sq"
    instance_loss: ClassVar[InstanceLoss] = "square"
    use_when: ClassVar[str] = (
        "To compare with the literature. Its variance does not shrink with the error, and it needs "
        "random bags."
    )

    def _losses_of_each_label(self, outputs: Tensor, task: Task) -> Tensor:
        if task == "multiclass":
            scores = outputs.softmax(dim=-1)
            return 1 - 2 * scores + scores.square().sum(dim=-1, keepdim=True)
        return torch.cat([-outputs, outputs], dim=-1).sigmoid().square()


@dataclass(frozen=True)
class EasyLog(_Easy):
    r"""EasyLLP with the log loss (EZ.Log): ``easy_square`` with another :math:`\ell`.

    .. math:: \ell(1, f) = -\log(f + \varepsilon), \quad \ell(0, f) = -\log(1 - f + \varepsilon)

    Parameters
    ----------
    prior : {"plug_in", "split"}
        As for `EasySquare`.
    offset : float
        :math:`\varepsilon`. It bounds the loss of an instance with negative weight, which would
        otherwise decrease without limit as its score saturates. The paper's code uses 1e-8.

    Notes
    -----
    Unbiased under the conditions of `EasySquare`. Without an offset it is not bounded below, and
    worse the more confident the scores.

    References
    ----------
    busafekete2023easy, li2024optimistic

    Examples
    --------
    >>> EasyLog()(torch.zeros(4), BagBatch(torch.tensor([0.5, 1.0]), 2))
    tensor(0.6931)
    """

    name: ClassVar[str] = "easy_log"
    paper_name: ClassVar[str] = "EZ.Log"
    instance_loss: ClassVar[InstanceLoss] = "log"
    use_when: ClassVar[str] = (
        "To compare with the literature, or for a linear model on small random bags with early "
        "stopping."
    )
    offset: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.offset < 1:
            raise ValueError(f"offset must be from 0 to below 1, got {self.offset!r}.")

    @property
    def unbiased_given_prior(self) -> bool:
        """True without an offset; with one, the loss is unbiased for a different instance loss."""
        return self.offset == 0

    def _losses_of_each_label(self, outputs: Tensor, task: Task) -> Tensor:
        if task == "multiclass":
            logs = outputs.log_softmax(dim=-1)
        else:
            logs = logsigmoid(torch.cat([outputs, -outputs], dim=-1))
        if self.offset == 0:
            return -logs
        return -torch.logaddexp(logs, torch.full_like(logs, math.log(self.offset)))


def _label_weights(batch: BagBatch) -> Tensor:
    """Weight of each possible label's loss in each bag."""
    prior = batch.label_prior
    weights = batch.bag_sizes * (batch.targets - prior) + prior
    return weights if batch.task == "multiclass" else torch.cat([weights, 1 - weights], dim=-1)


def _split_for_prior(logits: Tensor, batch: BagBatch) -> tuple[Tensor, BagBatch]:
    """Use the first half of the bags for the prior and return the rest."""
    if batch.n_bags_in_all != batch.n_bags:
        raise ValueError(
            "prior='split' needs a prior in the batch when it is sharded over workers."
        )
    half, axis = batch.n_bags // 2, -1 if batch.task == "binary" else -2

    def part(start: int, stop: int) -> BagBatch:
        sizes = batch.sizes if isinstance(batch.sizes, int) else batch.sizes[start:stop]
        shares = batch.proportions.narrow(axis, start, stop - start)
        return replace(batch, proportions=shares, sizes=sizes, noise_variance=None)

    spent, rest = part(0, half), part(half, batch.n_bags)
    prior = spent.label_prior.squeeze(-2)
    prior = prior.squeeze(-1) if batch.task == "binary" else prior
    start = spent.n_instances
    return logits.narrow(axis, start, logits.shape[axis] - start), replace(rest, prior=prior)
