"""Split whole bags into training, choosing and judging parts, or into folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unbag.arguments import check_share, check_whole
from unbag.arrays import Array
from unbag.errors import BagDataError
from unbag.randomness import numpy_generator

# Fewer bags measure a risk within a factor of two at best.
MIN_BAGS = 10
# Two bags may agree by chance, and an interval then has no width.
MIN_PART = 3
# A batch of the default rule.
MIN_TRAINING = 2


@dataclass(frozen=True)
class BagSplit:
    """Positions of bags for training, for choosing between models, and for judging the choice."""

    training: Array
    choosing: Array
    judging: Array


def hold_out_bags(
    sizes: Any,
    *,
    judge: float,
    choose: float = 0.0,
    seed: int,
    max_rows: int | None = None,
    name: str = "The share of held-out bags",
) -> BagSplit:
    """Hold out random bags, at least three of each kind, with at most `max_rows` instances each.

    `judge` and `choose` are shares of the bags; errors call them `name`.
    """
    sizes = np.asarray(sizes)
    n_judging, n_choosing = (_part_size(share, len(sizes)) for share in (judge, choose))
    if len(sizes) - n_judging - n_choosing < MIN_TRAINING:
        raise ValueError(
            f"{name} must leave at least {MIN_TRAINING} bags to train on, got {judge + choose:g} "
            f"of {len(sizes)} bags. Hold out fewer."
        )
    order = numpy_generator(seed, "split").permutation(len(sizes))
    judging = _limited(order[:n_judging], sizes, max_rows)
    choosing = _limited(order[n_judging : n_judging + n_choosing], sizes, max_rows)
    rest = np.setdiff1d(order, np.concatenate([judging, choosing]))
    return BagSplit(rest, np.sort(choosing), np.sort(judging))


def _part_size(share: float, n_bags: int) -> int:
    if not share:
        return 0
    check_share("The share of held-out bags", share)
    if n_bags < MIN_BAGS:
        raise BagDataError(
            f"At least {MIN_BAGS} bags are needed to hold some out, got {n_bags}. With fewer, hold "
            "out none, or use cross_fit_risk."
        )
    return max(MIN_PART, round(share * n_bags))


def fold_bags(n_bags: int, *, n_folds: int, seed: int) -> list[Array]:
    """Assign the bags to folds at random."""
    order = numpy_generator(seed, "folds").permutation(n_bags)
    return [np.sort(fold) for fold in np.array_split(order, n_folds)]


def fold_numbers(n_bags: int, n_folds: int, *, seed: int) -> Array:
    """Random fold of each bag; folds differ in size by at most one."""
    folds = np.arange(n_bags) % min(n_folds, n_bags)
    return numpy_generator(seed, "folds").permuted(folds)


def block_folds(n_bags: int, cv: int, *, seed: int, blocks: Array | None) -> Array:
    """Fold of each bag; blocks stay whole, unless a fold would leave fewer than two bags."""
    check_whole("cv", cv, least=2)
    if blocks is not None:
        names, codes = np.unique(blocks, return_inverse=True)
        folds = fold_numbers(len(names), cv, seed=seed)[codes]
        if n_bags - np.bincount(folds).max() >= 2:
            return folds
    return fold_numbers(n_bags, cv, seed=seed)


def take_bags(sizes: Any, *, max_rows: int, seed: int = 0) -> Array:
    """Positions of random bags with at most `max_rows` instances, but at least three."""
    sizes = np.asarray(sizes)
    order = numpy_generator(seed, "some").permutation(len(sizes))
    return np.sort(_limited(order, sizes, max_rows))


def _limited(positions: Array, sizes: Array, max_rows: int | None) -> Array:
    if max_rows is None:
        return positions
    fits = np.cumsum(sizes[positions]) <= max_rows
    fits[:MIN_PART] = True
    return positions[fits]
