"""Factorial-moment matching: compare moments of each bag's count with those of the count known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unbag.bags.batch import BagBatch
from unbag.rules.base import InstanceLoss, Rule


@dataclass(frozen=True)
class FactorialMoments(Rule):
    r"""Square of the difference between factorial moments of a bag's count (LLP-MM).

    .. math:: \hat L = \mathrm{mean}_i \sum_{r=1}^{m} \left[
              \binom{k_i}{r}^{-1} \sum_{j_1 < \dots < j_r} f_{ij_1} \cdots f_{ij_r}
              - \binom{k_i}{r}^{-1} \binom{k_i a_i}{r} \right]^2

    Parameters
    ----------
    order : int
        The number :math:`m` of moments. 1 gives ``proportion_square``.

    Notes
    -----
    The first term is the expected share of :math:`r`-tuples of distinct instances that are all
    positive, for independent labels with probabilities :math:`f`; the second is that share as the
    count tells it. So the true probabilities minimise each term in expectation. Where bags are
    larger, :math:`\sum_j f_j^2` in the second moment asks for scores that are sure of themselves,
    which the mean alone does not. Without classes that exclude each other the loss is the mean of
    that of positive and that of negative labels. Moments that a bag is too small for are zero on
    both sides. The weights of the orders are equal; we had a description of the method, and not
    its code.

    Examples
    --------
    >>> sure, unsure = torch.tensor([9.0, -9.0]), torch.zeros(2)
    >>> half = BagBatch(torch.tensor([0.5]), 2)
    >>> FactorialMoments()(sure, half) < FactorialMoments()(unsure, half)
    tensor(True)
    """

    name: ClassVar[str] = "factorial_moments"
    paper_name: ClassVar[str] = "new"
    instance_loss: ClassVar[InstanceLoss] = "square"
    use_when: ClassVar[str] = (
        "To compare with the literature on images. In small bags it favours more extreme "
        "scores than proportion matching."
    )

    order: int = 2

    def __post_init__(self) -> None:
        if self.order not in range(1, 9):
            raise ValueError(f"order must be a whole number from 1 to 8, got {self.order}.")

    @classmethod
    def variants(cls) -> tuple[Rule, ...]:
        """Two moments, and four."""
        return (cls(), cls(order=4))

    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the mean squared difference of all moments."""
        scores = batch.scores(logits)
        squares = self._squares(scores, batch.targets, batch)
        if batch.task != "multiclass":
            squares = (squares + self._squares(1 - scores, 1 - batch.targets, batch)) / 2
        return batch.average(squares)

    def _squares(self, scores: Tensor, targets: Tensor, batch: BagBatch) -> Tensor:
        """Sum over orders of squared differences, for each bag and output."""
        sizes = batch.bag_sizes.double()
        counts = sizes * targets.double()
        total, known = torch.zeros_like(counts), torch.ones_like(counts)
        tuples = torch.ones_like(sizes)
        expected = _elementary_symmetric(scores.double(), batch, self.order)
        for r, moment in enumerate(expected, start=1):
            known = known * (counts - r + 1) / r
            tuples = tuples * (sizes - r + 1).clamp(min=0) / r
            gap = torch.where(tuples > 0, moment - known, 0.0) / tuples.clamp(min=1)
            total = total + gap.square()
        return total.to(targets.dtype)


def _elementary_symmetric(scores: Tensor, batch: BagBatch, order: int) -> list[Tensor]:
    """Sums over all tuples of distinct instances of a bag, by Newton's identities."""
    powers = [batch.sum(scores**r) for r in range(1, order + 1)]
    found = [torch.ones_like(powers[0])]
    for r in range(1, order + 1):
        terms = [(-1) ** i * found[r - 1 - i] * powers[i] for i in range(r)]
        found.append(torch.stack(terms).sum(dim=0) / r)
    return found[1:]
