"""First class probabilities of images from bags, by features that held-out bags choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from unbag.arrays import Array
from unbag.bags import BagBatch, Bags
from unbag.bags.holdout import fold_numbers
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.evaluation.risk import pairwise_value
from unbag.images.loop import ImageBags
from unbag.images.propagation import propagate

N_FOLDS = 4
# Rounds of agreement between neighbours: many, or none where neighbours mislead.
ROUNDS, JUDGED_ROUNDS = (30, 0), (10, 0)
FEW_FEATURES = 40  # all are used: from few bags, a choice of their number is mostly noise


def start_posteriors(
    candidates: Sequence[Tensor],
    bags: BagBatch,
    n_components: int | Literal["auto"] = "auto",
    *,
    seed: int = 0,
) -> Tensor:
    """Class probabilities by features alone: ridge on bag means, then agreement of neighbours.

    The first features and neighbours are used, unless the estimated error in bags whose
    proportions were not used is clearly less without. No label is needed.

    `candidates` are features of shape (n_instances, n_features), bag by bag; those expected to be
    best first. The task of the bags is multiclass. `n_components` is as for `BagRidgeClassifier`,
    but "auto" takes all of at most 40 features.
    """
    n_folds = min(N_FOLDS, bags.n_bags // 2)  # an estimate needs two bags
    chosen, n_rounds = candidates[0], ROUNDS[0]
    if n_folds >= 2:
        folds = fold_numbers(bags.n_bags, n_folds, seed=seed)
        errors = [held_out_errors(features, bags, n_components, folds) for features in candidates]
        which, rounds = clearly_best(np.array(errors), bags.n_bags)
        chosen, n_rounds = candidates[which], ROUNDS[rounds]
    return propagate(chosen, bags, _ridge(chosen, bags, chosen, n_components), n_rounds=n_rounds)


def clearly_best(errors: Array, n_bags: int) -> tuple[int, int]:
    """Position of the least error, or the first if another is not less by a standard error.

    The pairwise estimate of a risk R from n bags has a deviation of about R sqrt(2 / n).

    Examples
    --------
    >>> errors = np.array([[0.5, 0.4], [0.45, 0.6]])
    >>> [clearly_best(errors, n_bags=n) for n in (8, 800)] == [(0, 0), (0, 1)]
    True
    """
    row, column = divmod(int(errors.argmin()), errors.shape[1])
    certain = errors.min() < errors[0, 0] * (1 - (2 / n_bags) ** 0.5)
    return (row, column) if certain else (0, 0)


def held_out_errors(
    features: Tensor, bags: BagBatch, n_components: int | Literal["auto"], folds: Array
) -> Array:
    """Estimated share of wrong classes in bags left out, with and without neighbours."""
    data = ImageBags(features, bags)
    errors = []
    for fold in range(folds.max() + 1):
        parts = [np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)]
        (train, known), (held, wanted) = (
            data.take(torch.as_tensor(part, device=features.device)) for part in parts
        )
        every = features[torch.cat([train, held])]
        start = _ridge(features[train], known, every, n_components)
        joined = _with_unknown(known, len(held))
        for n_rounds in JUDGED_ROUNDS:
            found = propagate(every, joined, start, n_rounds=n_rounds)[len(train) :]
            errors.append(_error(found, wanted))
    return np.reshape(errors, (-1, len(ROUNDS))).mean(axis=0)


def _ridge(
    features: Tensor, bags: BagBatch, every: Tensor, n_components: int | Literal["auto"]
) -> Tensor:
    """Class probabilities of every image by a ridge regression on the means of bags."""
    values = features.double().cpu().numpy()
    sizes = bags.bag_sizes[:, 0].long().cpu().numpy()
    shares = bags.proportions.double().cpu().numpy()
    ids: list[Any] = list(range(len(sizes)))
    data = Bags(values, np.arange(len(values)), sizes, shares, ids, None, "multiclass")
    if n_components == "auto" and features.shape[1] <= FEW_FEATURES:
        n_components = features.shape[1]
    ridge = BagRidgeClassifier(n_components=n_components).fit_bags(data)
    guess = ridge.predict_proba(every.double().cpu().numpy())
    return torch.as_tensor(guess, dtype=torch.float32, device=features.device)


def _with_unknown(bags: BagBatch, n_unknown: int) -> BagBatch:
    """The bags and one more, of images of which only the overall shares are known."""
    shares = torch.cat([bags.targets, bags.label_prior])
    sizes = bags.bag_sizes[:, 0].long()
    return BagBatch(shares, torch.cat([sizes, sizes.new_tensor([n_unknown])]), task="multiclass")


def _error(probabilities: Tensor, bags: BagBatch) -> float:
    """Pairwise estimate of the share of images whose likeliest class is wrong."""
    n_classes = probabilities.shape[1]
    hard = one_hot(probabilities.argmax(dim=1), n_classes).to(probabilities)
    gaps = (bags.mean(hard) - bags.targets).cpu().numpy()
    return pairwise_value(gaps, bags.bag_sizes[:, 0].cpu().numpy()) / 2
