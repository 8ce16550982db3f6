"""Posteriors of many classes, tilted to the counts of whole bags, on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["BagCounts", "tilt"]

# Counts of zero leave a class this small a share, so that logarithms stay finite.
LEAST = 1e-6


@dataclass(frozen=True)
class BagCounts:
    """Which bag each instance is in, and how many instances of each class a bag holds.

    Attributes
    ----------
    bag_of : Tensor of shape (n_instances,)
        Position of each instance's bag.
    counts : Tensor of shape (n_bags, n_classes)
        Instances of each class.
    """

    bag_of: Tensor
    counts: Tensor

    def sums(self, values: Tensor) -> Tensor:
        """Sums over each bag of values (n_instances, n_classes)."""
        return torch.zeros_like(self.counts).index_add_(0, self.bag_of, values)

    def take(self, bags: Tensor, rows: Tensor) -> BagCounts:
        """Some bags, with their instances in the order of `rows`."""
        place = torch.empty(len(self.counts), dtype=torch.long, device=bags.device)
        place[bags] = torch.arange(len(bags), device=bags.device)
        return BagCounts(place[self.bag_of[rows]], self.counts[bags])


@torch.no_grad()
def tilt(log_probabilities: Tensor, bags: BagCounts, *, n_iterations: int = 30) -> Tensor:
    r"""Multiply class probabilities by weights of the bag until expected counts are the known ones.

    .. math:: q_{jc} \propto p_{jc} w_{ic}, \qquad \sum_{j \in i} q_{jc} = n_{ic}

    Parameters
    ----------
    log_probabilities : Tensor of shape (n_instances, n_classes)
        Up to a constant of each instance.
    bags : BagCounts
    n_iterations : int
        Rescalings of the weights; each is one step of Sinkhorn's algorithm in every bag.

    Returns
    -------
    Tensor of shape (n_instances, n_classes)
        Posterior probabilities; the rows add up to one.

    Notes
    -----
    The saddle point of the exact posterior given the counts, so good for bags of some size.

    Examples
    --------
    >>> bags = BagCounts(torch.tensor([0, 0]), torch.tensor([[1.0, 1.0]]))
    >>> tilt(torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log(), bags).sum(dim=0)
    tensor([1.0000, 1.0000])
    """
    wanted = (bags.counts.float() + LEAST).log()
    weights = torch.zeros_like(wanted)
    for _ in range(n_iterations):
        posterior = torch.softmax(log_probabilities + weights[bags.bag_of], dim=1)
        weights += wanted - (bags.sums(posterior) + LEAST).log()
    return torch.softmax(log_probabilities + weights[bags.bag_of], dim=1)
