"""Supervised learning on the posterior label probabilities given each bag's count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unbag.bags.batch import BagBatch
from unbag.posterior.classes import class_posterior
from unbag.rules.base import InstanceLoss, Rule
from unbag.rules.count_likelihood import CountLikelihood, own_logits


@dataclass(frozen=True)
class CountPosterior(Rule):
    r"""Mean instance loss, with each label replaced by its probability given the bag's count.

    .. math:: \hat L = \mathrm{mean}_{ij} \left[ q_{ij} \, \ell(1 - f_{ij})
              + (1 - q_{ij}) \, \ell(f_{ij}) \right],
              \qquad q_{ij} = P\Big( Y_{ij} = 1 \Big| \sum_j Y_{ij} = k_i a_i \Big)

    where labels are independent with probabilities :math:`f_{ij}`, and :math:`\ell(e)` is the
    probability that more than half of :math:`2m` draws are wrong if each is wrong with
    probability :math:`e`.

    Parameters
    ----------
    votes : int
        The number :math:`m`. 1 gives the square loss, 2 gives :math:`4 e^3 - 3 e^4`. Larger values
        are closer to the 0-1 loss and give less weight to instances far on the wrong side.

    Notes
    -----
    The gradient treats :math:`q` as constant, like the M-step of EM. With the log loss it would be
    the gradient of `count_likelihood`. Every :math:`\ell` is a proper loss, and :math:`q` has mean
    :math:`f` when :math:`f` is the true probability. So the truth is a stationary point for every
    `votes`; the choice matters when the model cannot represent the truth. For three classes or more
    :math:`q` is given all counts of the bag at once: see `class_posterior`. With noise of known
    variance the probabilities are those of `count_likelihood`, each class's by its own count.

    The default of 2 was better than 1 for linear nets on the MNIST test set.

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
        "Models that cannot represent the truth, above all linear ones, and bags of up to 100. "
        "A step costs as much as with `count_likelihood`."
    )
    semi_gradient = True  # the posterior is treated as constant

    votes: int = 2

    def __post_init__(self) -> None:
        if self.votes not in range(1, 21):
            raise ValueError(f"votes must be a whole number from 1 to 20, got {self.votes}.")

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the expected loss under the posterior of the labels."""
        scores = batch.scores(logits)
        target = self.posterior(logits, batch).to(scores.dtype)
        losses = target * self._majority(1 - scores) + (1 - target) * self._majority(scores)
        return batch.average(batch.mean(losses))

    def posterior(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Probability of each label given its bag's counts, shape (..., n_instances, n_outputs).

        The derivative of the log likelihood of the count with respect to a logit is the posterior
        probability of that label minus its prior probability.
        """
        joint = batch.task == "multiclass" and batch.targets.shape[-1] > 2
        if joint and batch.noise_variance is None:
            return class_posterior(logits.detach(), batch)
        with torch.enable_grad():
            outputs = own_logits(logits.detach(), batch).requires_grad_()
            minus_log = CountLikelihood().of_each_bag(outputs, batch).sum()
            (excess,) = torch.autograd.grad(minus_log, outputs)
        return (outputs.detach().sigmoid() - excess).clamp(0, 1)

    def _majority(self, error: Tensor) -> Tensor:
        """Probability that more than half of the draws are wrong."""
        n = 2 * self.votes
        terms = [
            math.comb(n, wrong) * error**wrong * (1 - error) ** (n - wrong)
            for wrong in range(self.votes + 1, n + 1)
        ]
        return torch.stack(terms).sum(dim=0)
