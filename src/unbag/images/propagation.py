"""Class posteriors from features: neighbours agree, and every bag has its counts."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unbag.bags.batch import BagBatch
from unbag.posterior.classes import tilted_classes

N_NEIGHBOURS = 20
TEMPERATURE = 0.1  # of the weights of neighbours
SHARPNESS = 2.0  # power of averaged probabilities, since averaging blurs them
TOLERANCE = 1e-4  # of a proportion


@torch.no_grad()
def propagate(features: Tensor, bags: BagBatch, start: Tensor, *, n_rounds: int = 30) -> Tensor:
    """Average posteriors over near neighbours and tilt them to the bags' counts, in turn.

    Starts from class probabilities of the instances, such as those of a ridge regression on bag
    means. At a fixed point neighbours and counts agree: neighbours make labels smooth over the
    features, and counts decide between labelings that are equally smooth.
    """
    neighbours, closeness = nearest_neighbours(features, N_NEIGHBOURS)

    def posterior_of(logits: Tensor) -> Tensor:
        return tilted_classes(logits, bags, tolerance=TOLERANCE).float()

    posterior = posterior_of(start.clamp(min=1e-6).log())
    for _ in range(n_rounds):
        averaged = torch.einsum("nk,nkc->nc", closeness, posterior[neighbours])
        posterior = posterior_of(SHARPNESS * averaged.clamp(min=1e-6).log())
    return posterior


@torch.no_grad()
def nearest_neighbours(
    features: Tensor, n_neighbours: int, *, chunk: int = 2048
) -> tuple[Tensor, Tensor]:
    """Nearest rows by cosine, itself left out, and weights that add up to one."""
    points = normalize(features.float(), dim=1)
    n_neighbours = min(n_neighbours, len(points) - 1)
    found, closeness = [], []
    for start in range(0, len(points), chunk):
        similarity = points[start : start + chunk] @ points.t()
        own = torch.arange(start, start + len(similarity), device=points.device)
        similarity.scatter_(1, own[:, None], -torch.inf)
        values, indices = similarity.topk(n_neighbours, dim=1)
        found.append(indices)
        closeness.append(torch.softmax(values / TEMPERATURE, dim=1))
    return torch.cat(found), torch.cat(closeness)
