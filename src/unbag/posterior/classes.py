"""Posterior of several classes given all counts of a bag: exact for small bags, else tilted."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from unbag.arrays import Array
from unbag.bags.batch import BagBatch

# Instances times count vectors: a bag of 16 with 2,000 vectors, which takes about a millisecond.
EXACT_UP_TO = 2**15
MAX_STEPS = 200
# A class less likely than exp(-40) is as good as impossible, and what is added to it still counts.
SUREST = -40.0


def is_small(counts: Array) -> bool:
    """Whether the law of these counts of one bag is computed exactly."""
    below = np.delete(counts, counts.argmax())
    return math.prod(int(n) + 1 for n in below) * int(counts.sum()) <= EXACT_UP_TO


def class_posterior(logits: Tensor, batch: BagBatch) -> Tensor:
    r"""Probability of each class given the counts of all classes in the bag.

    .. math:: q_{jc} = P\Big(Y_j = c \Big| \sum_l 1\{Y_l = d\} = n_d \text{ for all } d\Big)

    Logits and result have shape (..., n_instances, n_classes); the result is in double precision,
    without a gradient. It is exact where counts are whole and `is_small` says so; elsewhere it is
    that of `tilted_classes`, its saddle point, off by a term of order one over the bag's size.
    """
    tilted = tilted_classes(logits, batch)
    found = tilted.cpu().numpy().reshape(-1, *tilted.shape[-2:]).copy()
    counts = (batch.bag_sizes * batch.targets).double().cpu().numpy()
    counts = np.broadcast_to(counts, (*tilted.shape[:-2], *counts.shape[-2:]))
    sizes = batch.bag_sizes[:, 0].long().cpu().numpy()
    ends = np.cumsum(sizes)
    for trial, of_bags in zip(found, counts.reshape(-1, *counts.shape[-2:]), strict=True):
        for start, end, own in zip(ends - sizes, ends, of_bags, strict=True):
            whole = np.rint(own).astype(int)
            if np.abs(own - whole).max() < 1e-3 and is_small(whole):
                # A common weight of a class changes nothing once its count is given.
                trial[start:end] = exact_classes(trial[start:end], whole)
    return torch.as_tensor(found, device=tilted.device).reshape(tilted.shape)


def exact_classes(scores: Array, counts: Array) -> Array:
    r"""Class probabilities of the instances of one bag, given the counts of all classes.

    .. math:: q_{jc} \propto p_{jc} \sum_v F_j(v) \, B_j(n - e_c - v)

    with :math:`F_j` and :math:`B_j` the laws of the counts of the instances before and after
    :math:`j`. Counts are whole; that of the most frequent class is what the others leave.
    """
    order = [c for c in np.argsort(counts, kind="stable") if counts[c] > 0]
    own, box = scores[:, order], tuple(counts[order][:-1] + 1)
    before = _running_laws(own[:-1], box)
    # Reversed in every axis, so that an index is the number that is missing.
    after = np.flip(_running_laws(own[:0:-1], box))
    found, axes = np.zeros_like(scores), tuple(range(1, before.ndim))
    found[:, order[-1]] = own[:, -1] * (before * after).sum(axis=axes)
    for axis, (column, c) in enumerate(zip(own.T[:-1], order[:-1], strict=True), start=1):
        one_less, one_more = np.moveaxis(before, axis, 0)[:-1], np.moveaxis(after, axis, 0)[1:]
        # np.moveaxis puts the class first, and the instances second.
        sums = (one_less * one_more).sum(axis=tuple(a for a in range(before.ndim) if a != 1))
        found[:, c] = column * sums
    return found / found.sum(axis=1, keepdims=True)


def _running_laws(scores: Array, box: tuple[int, ...]) -> Array:
    """Laws of the counts of none, one, two ... of these instances, within the box of counts."""
    laws = np.zeros((len(scores) + 1, *box))
    laws[(0,) * laws.ndim] = 1
    places = [(slice(None),) * axis for axis in range(len(box))]
    for number, (*of_axes, rest) in enumerate(scores.tolist()):
        law, after = laws[number, ...], laws[number + 1, ...]  # views, also of single numbers
        np.multiply(rest, law, out=after)
        for place, probability in zip(places, of_axes, strict=True):
            after[(*place, slice(1, None))] += probability * law[(*place, slice(None, -1))]
    return laws


@torch.no_grad()
def tilted_classes(logits: Tensor, batch: BagBatch, *, tolerance: float = 1e-9) -> Tensor:
    r"""Multiply class probabilities by weights of the bag until expected counts are the known ones.

    .. math:: q_{jc} \propto p_{jc} \, e^{\lambda_c}, \qquad \sum_j q_{jc} = n_c

    Logits are logarithms of class probabilities, up to a constant of each instance. No proportion
    is off by more than `tolerance`. The weights minimise the convex
    :math:`\sum_j \log \sum_c p_{jc} e^{\lambda_c} - n^\top \lambda`. Newton's steps are taken where
    they bring the counts nearer; elsewhere one of Sinkhorn's algorithm, which always lowers it.
    """
    logs = batch.outputs(logits).double().log_softmax(dim=-1).clamp(min=SUREST)
    sizes = batch.bag_sizes.double()
    counts = (batch.targets.double().clamp(min=0) * sizes).expand(*logs.shape[:-2], -1, -1)
    present = counts > 0
    weights = torch.where(present, 0.0, -torch.inf).to(counts)
    scores, excess = _expected(logs, weights, counts, batch)
    for _ in range(MAX_STEPS):
        if bool((excess.abs() <= tolerance * sizes).all()):
            break
        newton = weights - _newton_step(scores, excess, present, batch)
        tried, left = _expected(logs, newton, counts, batch)
        better = left.abs().amax(-1, keepdim=True) < 0.5 * excess.abs().amax(-1, keepdim=True)
        if bool(better.all()):
            weights, scores, excess = newton, tried, left
            continue
        ratio = counts / (counts + excess).clamp(min=1e-300)
        sinkhorn = weights + torch.where(present, ratio, 1.0).log()
        weights = torch.where(better, newton, sinkhorn)
        scores, excess = _expected(logs, weights, counts, batch)
    return scores


def _expected(
    logs: Tensor, weights: Tensor, counts: Tensor, batch: BagBatch
) -> tuple[Tensor, Tensor]:
    """Tilted scores, and by how much their sums exceed the counts."""
    scores = (logs + batch.spread(weights)).softmax(dim=-1)
    return scores, batch.sum(scores) - counts


def _newton_step(scores: Tensor, excess: Tensor, present: Tensor, batch: BagBatch) -> Tensor:
    """Solve with each bag's covariance of counts; a common weight of all classes moves nothing."""
    columns = [batch.sum(scores * column) for column in scores.unsqueeze(-2).unbind(-1)]
    covariance = torch.diag_embed(batch.sum(scores)) - torch.stack(columns, dim=-1)
    # Absent classes have no equation; the ones fix the common weight.
    scale = covariance.diagonal(dim1=-2, dim2=-1).amax(-1, keepdim=True).clamp(min=1e-300)
    covariance = covariance + scale[..., None] / scores.shape[-1]
    covariance = covariance + torch.diag_embed(torch.where(present, 1e-12, 1.0) * scale)
    step = torch.linalg.solve(covariance, excess.unsqueeze(-1)).squeeze(-1)
    return torch.where(present, step.clamp(-5, 5), 0.0)
