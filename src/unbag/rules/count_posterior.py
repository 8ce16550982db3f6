"""Supervised learning on the posterior label probabilities given each bag's count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unbag.bags.batch import BagBatch
from unbag.rules.base import InstanceLoss, Rule
from unbag.rules.count_likelihood import SURE, CountLikelihood, own_logits

__all__ = ["CountPosterior", "tilted_posterior"]


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
    :math:`q` is given all counts of the bag at once: see `tilted_posterior`. With noise of known
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

    votes: int = 2

    def __post_init__(self) -> None:
        if self.votes not in range(1, 21):
            raise ValueError(f"votes must be a whole number from 1 to 20, got {self.votes}.")

    @property
    def semi_gradient(self) -> bool:
        """True: the posterior is treated as constant."""
        return True

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
            return tilted_posterior(logits.detach(), batch)
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


def tilted_posterior(logits: Tensor, batch: BagBatch, *, n_rounds: int = 50) -> Tensor:
    r"""Probability of each class given the counts of all classes in the bag.

    .. math:: q_{jc} \propto p_{jc} \, w_c, \qquad \sum_j q_{jc} = n_c

    with class weights :math:`w` common to the bag, found by scaling classes and instances in turn.

    Parameters
    ----------
    logits : Tensor of shape (..., n_instances, n_classes)
    batch : BagBatch
        Bags of a multiclass task.
    n_rounds : int
        Rounds of scaling.

    Notes
    -----
    The saddle point of the exact posterior: exact in bags of one and where all instances of a bag
    have the same scores, off by a term of order 1/k in bags of k.

    Examples
    --------
    >>> thirds = BagBatch(torch.tensor([[0.5, 0.5, 0.0]]), 2, task="multiclass")
    >>> tilted_posterior(torch.zeros(2, 3), thirds)
    tensor([[0.5000, 0.5000, 0.0000],
            [0.5000, 0.5000, 0.0000]], dtype=torch.float64)
    """
    outputs = torch.nan_to_num(batch.outputs(logits).double(), torch.nan, SURE, -SURE)
    counts = (batch.bag_sizes * batch.targets).double()
    log_counts = counts.log()
    tilt = torch.where(counts > 0, torch.zeros_like(counts), -torch.inf)
    for _ in range(n_rounds):
        expected = batch.sum((outputs + batch.spread(tilt)).softmax(dim=-1))
        step = log_counts - expected.clamp(min=1e-300).log()
        tilt = torch.where(counts > 0, tilt + step, -torch.inf)
    return (outputs + batch.spread(tilt)).softmax(dim=-1)
