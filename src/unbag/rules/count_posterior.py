"""Supervised learning on what a bag's count says about each label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unbag.bags.batch import BagBatch
from unbag.rules.base import InstanceLoss, Rule
from unbag.rules.count_likelihood import CountLikelihood, own_logits

__all__ = ["CountPosterior"]


@dataclass(frozen=True)
class CountPosterior(Rule):
    r"""Mean loss of the instances, each label replaced by its probability given the bag's count.

    .. math:: \hat L = \mathrm{mean}_{ij} \left[ q_{ij} \, \ell(1 - f_{ij})
              + (1 - q_{ij}) \, \ell(f_{ij}) \right],
              \qquad q_{ij} = P\Big( Y_{ij} = 1 \Big| \sum_j Y_{ij} = k_i a_i \Big)

    where labels are independent with probabilities :math:`f_{ij}`, and :math:`\ell(e)` is the
    chance that more than half of :math:`2m` draws are wrong when each is with probability
    :math:`e`.

    Parameters
    ----------
    votes : int
        The number :math:`m`: 1 is the square loss, 2 gives :math:`4 e^3 - 3 e^4`, and the larger it
        is, the closer to the 0-1 loss, and the less an instance far on the wrong side matters.

    Notes
    -----
    The gradient holds :math:`q` constant, as the maximisation step of EM does; with the log loss it
    would be that of `count_likelihood`. Every :math:`\ell` is a proper loss, and :math:`q` has mean
    :math:`f` where :math:`f` is right: so the truth is a stationary point for each `votes`, and
    `votes` decides what a model that cannot reach the truth is best at. With noise of known
    variance, and for several classes, the probabilities are those of `count_likelihood`.

    The default of 2 was the better for linear nets on the test sets of MNIST.

    References
    ----------
    buja2005loss

    Examples
    --------
    >>> CountPosterior(votes=1)(torch.zeros(4), BagBatch(torch.tensor([0.5, 0.5]), 2))
    tensor(0.2500)
    """

    name: ClassVar[str] = "count_posterior"
    paper_name: ClassVar[str] = "new"
    instance_loss: ClassVar[InstanceLoss] = "majority"
    use_when: ClassVar[str] = (
        "Models too simple for the truth, linear ones above all, and bags of up to a hundred. "
        "A step costs as much as one of `count_likelihood`."
    )

    votes: int = 2

    def __post_init__(self) -> None:
        if self.votes not in range(1, 21):
            raise ValueError(f"votes must be a whole number from 1 to 20, got {self.votes}.")

    @property
    def semi_gradient(self) -> bool:
        """True: the posterior is held constant."""
        return True

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the expected loss under the posterior of the labels."""
        scores = batch.scores(logits)
        target = self.posterior(logits, batch).to(scores.dtype)
        losses = target * self._majority(1 - scores) + (1 - target) * self._majority(scores)
        return batch.average(batch.mean(losses))

    def posterior(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Probability of each label given its bag's count, shape (..., n_instances, n_outputs).

        The derivative of the log likelihood of a count by a logit is what the count adds to the
        probability of that label.
        """
        with torch.enable_grad():
            outputs = own_logits(logits.detach(), batch).requires_grad_()
            minus_log = CountLikelihood().of_each_bag(outputs, batch).sum()
            (excess,) = torch.autograd.grad(minus_log, outputs)
        return (outputs.detach().sigmoid() - excess).clamp(0, 1)

    def _majority(self, error: Tensor) -> Tensor:
        """Chance that more than half of the draws are wrong."""
        n = 2 * self.votes
        terms = [
            math.comb(n, wrong) * error**wrong * (1 - error) ** (n - wrong)
            for wrong in range(self.votes + 1, n + 1)
        ]
        return torch.stack(terms).sum(dim=0)
