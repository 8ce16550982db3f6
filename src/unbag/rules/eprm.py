"""Empirical proportional risk: the share of bags whose proportion is not matched exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unbag.bags.batch import BagBatch
from unbag.rules.base import InstanceLoss, Rule

__all__ = ["Eprm"]


@dataclass(frozen=True)
class Eprm(Rule):
    r"""Share of bags whose hard predictions do not add up to the bag's proportion (EPRM).

    .. math:: \hat L = \mathrm{mean}_i \, \mathbb 1\{r_i \neq 0\}

    Notes
    -----
    A score for hard predictions: it has no gradient, and is minimised exactly in
    ``unbag_paper.exact``. Learns at a fast 1/n rate under realizability, and can need :math:`2^k`
    bags without it.

    References
    ----------
    yu2014learning, li2024optimistic

    Examples
    --------
    >>> Eprm()(torch.tensor([1.0, -1.0, 1.0, 1.0]), BagBatch(torch.tensor([0.5, 0.5]), 2))
    tensor(0.5000)
    """

    name: ClassVar[str] = "eprm"
    paper_name: ClassVar[str] = "EPRM"
    instance_loss: ClassVar[InstanceLoss] = "zero_one"
    use_when: ClassVar[str] = (
        "Small classes of hypotheses one of which makes no error, and exact counts; minimised by "
        "`unbag_paper.exact`."
    )
    differentiable: ClassVar[bool] = False

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the share of bags that are missed."""
        counts = batch.sum(_hard_predictions(batch.outputs(logits), batch))
        wanted = batch.bag_sizes * batch.targets
        # A count is an integer; what is left is the rounding of size times proportion.
        rounding = 8 * torch.finfo(wanted.dtype).eps * batch.bag_sizes
        missed = ((counts - wanted).abs() > rounding).any(dim=-1, keepdim=True)
        unknown = counts.isnan().any(dim=-1, keepdim=True)
        return batch.average(missed.to(counts.dtype).masked_fill(unknown, torch.nan))


def _hard_predictions(outputs: Tensor, batch: BagBatch) -> Tensor:
    if batch.task != "multiclass":
        hard = (outputs > 0).to(outputs.dtype)
    else:
        hard = torch.zeros_like(outputs).scatter(-1, outputs.argmax(dim=-1, keepdim=True), 1.0)
    return hard.masked_fill(outputs.isnan(), torch.nan)
