"""Proportion matching: compare each bag's mean score with its proportion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unbag.bags.batch import BagBatch
from unbag.rules.base import InstanceLoss, Rule


@dataclass(frozen=True)
class ProportionSquare(Rule):
    r"""Square of the difference between a bag's mean score and its proportion (PM.Sq).

    .. math:: \hat L = \mathrm{mean}_i \, r_i^2, \qquad r_i = \mathrm{mean}_j f_{ij} - a_i

    Notes
    -----
    For bags of size :math:`k` the expectation is :math:`R/k + (1 - 1/k)(E f - p)^2`: a fraction of
    the instance risk, plus a bias that dominates for large bags. The rule learns when the model
    class can bring both to zero. Otherwise its excess risk can stay above a constant.

    References
    ----------
    li2024optimistic, busafekete2023easy

    Examples
    --------
    >>> ProportionSquare()(torch.zeros(4), BagBatch(torch.tensor([0.5, 1.0]), 2))
    tensor(0.1250)
    """

    name: ClassVar[str] = "proportion_square"
    paper_name: ClassVar[str] = "PM.Sq"
    instance_loss: ClassVar[InstanceLoss] = "square"
    use_when: ClassVar[str] = (
        "A baseline, or bags balanced by label. In large bags it carries little information on the "
        "risk."
    )

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the mean squared residual."""
        return batch.average(batch.residuals(logits).square())


@dataclass(frozen=True)
class ProportionLog(Rule):
    r"""Cross entropy between a bag's proportion and its mean score (PM.Log).

    .. math:: \hat L = \mathrm{mean}_i
              \left[ -a_i \log \bar f_i - (1 - a_i) \log(1 - \bar f_i) \right]

    Notes
    -----
    The logarithm of the mean score is computed from the logits, so it stays finite when the score
    rounds to 0 or 1. Biased in the same way as ``proportion_square``.

    References
    ----------
    li2024optimistic, busafekete2023easy

    Examples
    --------
    >>> ProportionLog()(torch.zeros(4), BagBatch(torch.tensor([0.5, 0.5]), 2))
    tensor(0.6931)
    """

    name: ClassVar[str] = "proportion_log"
    paper_name: ClassVar[str] = "PM.Log"
    instance_loss: ClassVar[InstanceLoss] = "log"
    use_when: ClassVar[str] = (
        "The alternative to try beside the default, also when bags are grouped by the features."
    )

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the mean cross entropy."""
        outputs = batch.outputs(logits)
        if batch.task == "multiclass":
            log_mean = batch.log_mean_exp(torch.log_softmax(outputs, dim=-1))
            return batch.average(-batch.targets * log_mean)
        log_positive = batch.log_mean_exp(logsigmoid(outputs))
        log_negative = batch.log_mean_exp(logsigmoid(-outputs))
        return batch.average(-batch.targets * log_positive - (1 - batch.targets) * log_negative)
