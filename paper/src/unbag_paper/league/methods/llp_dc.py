"""LLP-DC: hard pseudo-labels with exactly the bag's counts, by minimum-cost flow."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from unbag.images import ImageBatch
from unbag.images.loop import Learner
from unbag_paper.league.methods.base import Method, cross_entropy

__all__ = ["LlpDc", "likeliest_labels"]


@dataclass(eq=False)
class LlpDc(Method):
    """Proportions on the weak view, the likeliest labeling with the bag's counts on the strong.

    Parameters
    ----------
    weight : float
    """

    name, label, reference = "llp_dc", "LLP-DC", "ma2026dual"
    weight: float = 1.0

    def loss(self, net: Learner, batch: ImageBatch) -> Tensor:
        """Proportions plus labels of the flow."""
        weak, strong = net(torch.cat([batch.weak, batch.strong()])).chunk(2)
        labels = _labels(weak.detach(), batch).to(weak.device)
        return self.proportions(weak, batch.bags) + self.weight * cross_entropy(strong, labels)


def _labels(logits: Tensor, batch: ImageBatch) -> Tensor:
    bags = batch.bags
    sizes = bags.bag_sizes[:, 0].long().cpu().numpy()
    counts = torch.round(bags.bag_sizes * bags.targets).long().cpu().numpy()
    parts = np.split(logits.log_softmax(dim=1).cpu().numpy(), np.cumsum(sizes)[:-1])
    found = [likeliest_labels(part, own) for part, own in zip(parts, counts, strict=True)]
    return torch.as_tensor(np.concatenate(found))


def likeliest_labels(log_scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The labels with these counts whose joint probability is largest.

    A flow from images through classes with capacities is an assignment of images to places, as
    many of each class as the bag has.

    Examples
    --------
    >>> likeliest_labels(np.log([[0.6, 0.4], [0.9, 0.1]]), np.array([1, 1]))
    array([1, 0])
    """
    places = np.repeat(np.arange(len(counts)), counts)
    rows, chosen = linear_sum_assignment(log_scores[:, places], maximize=True)
    labels = np.empty(len(log_scores), dtype=int)
    labels[rows] = places[chosen]
    return labels
