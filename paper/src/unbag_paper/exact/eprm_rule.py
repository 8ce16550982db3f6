"""Empirical proportional risk: the fraction of bags whose proportion is not matched exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unbag.bags.batch import BagBatch
from unbag.rules.base import InstanceLoss, Rule

__all__ = ["EprmRule"]


@dataclass(frozen=True)
class EprmRule(Rule):
    r"""Fraction of bags whose hard predictions do not match the bag's proportion (EPRM).

    .. math:: \hat L = \mathrm{mean}_i \, \mathbb 1\{r_i \neq 0\}

    Notes
    -----
    A loss on hard predictions, for batches of any task. It has no gradient; `EPRM` minimises it
    exactly, by counts. It learns at the fast rate 1/n under realizability, and can need
    :math:`2^k` bags otherwise.

    References
    ----------
    yu2014learning, li2024optimistic

    Examples
    --------
    >>> EprmRule()(torch.tensor([1.0, -1.0, 1.0, 1.0]), BagBatch(torch.tensor([0.5, 0.5]), 2))
    tensor(0.5000)
    """

    name: ClassVar[str] = "eprm"
    paper_name: ClassVar[str] = "EPRM"
    instance_loss: ClassVar[InstanceLoss] = "zero_one"
    use_when: ClassVar[str] = (
        "Small hypothesis classes that contain a perfect classifier, and exact counts. Minimised "
        "by `unbag_paper.exact`."
    )

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the fraction of bags that are not matched."""
        counts = batch.sum(_hard_predictions(batch.outputs(logits), batch))
        wanted = batch.bag_sizes * batch.targets
        # Counts are integers; the rest is the rounding error of size times proportion.
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
