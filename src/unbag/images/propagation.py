"""Class posteriors from features: neighbours agree, and every bag has its counts."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unbag.bags.batch import BagBatch
from unbag.posterior.classes import tilted_classes
from unbag.training.batches import as_inputs

__all__ = ["image_features", "nearest_neighbours", "propagate"]

TOLERANCE = 1e-4  # of a proportion


@torch.no_grad()
def propagate(
    features: Tensor,
    bags: BagBatch,
    start: Tensor,
    *,
    n_neighbours: int = 20,
    n_rounds: int = 30,
    sharpness: float = 2.0,
) -> Tensor:
    r"""Average posteriors over near neighbours and tilt them to the bags' counts, in turn.

    Parameters
    ----------
    features : Tensor of shape (n_instances, n_features)
        Bag by bag.
    bags : BagBatch
    start : Tensor of shape (n_instances, n_classes)
        Class probabilities to begin with, such as those of a ridge regression on bag means.
    n_neighbours, n_rounds : int
    sharpness : float
        Power that averaged probabilities are raised to, since averaging blurs them.

    Returns
    -------
    Tensor of shape (n_instances, n_classes)
        Posterior probabilities with the counts of every bag.

    Notes
    -----
    A fixed point makes neighbours and counts agree. The neighbours stand for smoothness of the
    label over features; the counts break the tie between labelings that are equally smooth.
    """
    neighbours, closeness = nearest_neighbours(features, n_neighbours)

    def posterior_of(logits: Tensor) -> Tensor:
        return tilted_classes(logits, bags, tolerance=TOLERANCE).float()

    posterior = posterior_of(start.clamp(min=1e-6).log())
    for _ in range(n_rounds):
        averaged = torch.einsum("nk,nkc->nc", closeness, posterior[neighbours])
        posterior = posterior_of(sharpness * averaged.clamp(min=1e-6).log())
    return posterior


@torch.no_grad()
def nearest_neighbours(
    features: Tensor, n_neighbours: int, *, temperature: float = 0.1, chunk: int = 2048
) -> tuple[Tensor, Tensor]:
    """Nearest rows by cosine, itself left out, and weights that add up to one.

    Examples
    --------
    >>> points = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> nearest_neighbours(points, 1)[0].flatten().tolist()
    [1, 0, 1]
    """
    points = normalize(features.float(), dim=1)
    n_neighbours = min(n_neighbours, len(points) - 1)
    found, closeness = [], []
    for start in range(0, len(points), chunk):
        similarity = points[start : start + chunk] @ points.t()
        own = torch.arange(start, start + len(similarity), device=points.device)
        similarity.scatter_(1, own[:, None], -torch.inf)
        values, indices = similarity.topk(n_neighbours, dim=1)
        found.append(indices)
        closeness.append(torch.softmax(values / temperature, dim=1))
    return torch.cat(found), torch.cat(closeness)


@torch.no_grad()
def image_features(net: torch.nn.Module, images: Tensor, *, chunk: int = 2000) -> Tensor:
    """Features of every image, by a net that has a method `features`."""
    net.eval()
    return torch.cat([net.features(as_inputs(part)).float() for part in images.split(chunk)])  # type: ignore[operator]
