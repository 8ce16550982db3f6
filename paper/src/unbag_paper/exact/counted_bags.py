"""Bags as the exact minimisers take them: sizes, positive counts, and each instance's bag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.errors import BagDataError

__all__ = ["CountedBags", "combine_small_bags", "counted_bags"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# A count that is this close to a whole number is one: proportions are often written as decimals.
COUNT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class CountedBags:
    """Validated bags.

    Parameters
    ----------
    member : array of shape (instances,)
        Number of the bag of each instance, from 0.
    sizes : array of shape (bags,)
        Instances in each bag.
    positives : array of shape (bags,)
        Positive labels in each bag, ``size * proportion``.
    """

    member: Integers
    sizes: Integers
    positives: Array

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.sizes)

    def counts(self, predictions: NDArray[np.integer]) -> Integers:
        """Predicted ones in each bag; `predictions` has shape (..., instances)."""
        order = np.argsort(self.member, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        ordered = predictions[..., order].astype(np.int64)
        return np.add.reduceat(ordered, starts, axis=-1)


def counted_bags(
    proportions: ArrayLike,
    *,
    bags: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    combine_to: int | None = None,
) -> CountedBags:
    """Check bags and turn proportions into counts.

    Parameters
    ----------
    proportions : array_like of shape (bags,)
        Mean label of each bag. With `bags`, in the order of the sorted bag ids.
    bags : array_like of shape (instances,), optional
        Bag id of each instance.
    sizes : array_like of shape (bags,), optional
        Size of each bag, its instances standing next to each other. Exactly one of the two.
    combine_to : int, optional
        Join neighbouring bags until each has at least this size (the paper suggests 11 for EPRM).

    Raises
    ------
    BagDataError
        When a proportion is not the mean of 0/1 labels of a bag of its size.

    Examples
    --------
    >>> counted_bags([0.5, 1.0], sizes=[2, 3]).positives.tolist()
    [1.0, 3.0]
    >>> counted_bags([0.3], sizes=[2])
    Traceback (most recent call last):
    ...
    unbag.errors.BagDataError: `proportions`: bag 0 of size 2 has proportion 0.3, which is not the
    mean of 2 labels in {0, 1}.
    """
    member, counted = _members(bags, sizes)
    share = np.asarray(proportions, dtype=float)
    if share.shape != counted.shape:
        raise BagDataError(
            f"`proportions` must hold one number per bag: {len(counted)} bags, shape {share.shape}."
        )
    positives = _whole_counts(share, counted)
    found = CountedBags(member, counted, positives)
    return found if combine_to is None else combine_small_bags(found, combine_to)


def combine_small_bags(bags: CountedBags, least: int = 11) -> CountedBags:
    """Join neighbouring bags until every bag has at least `least` instances.

    A remainder too small joins the last bag. The paper suggests 11, the least size of its theorem
    on EPRM.

    Examples
    --------
    >>> small = counted_bags([0.5, 1.0, 0.0], sizes=[2, 2, 2])
    >>> combine_small_bags(small, 4).sizes.tolist()
    [6]
    """
    if bags.sizes.sum() < least:
        raise BagDataError(f"All bags together hold fewer than `combine_to`={least} instances.")
    target = np.empty(bags.n_bags, dtype=np.int64)
    group, filled = 0, 0
    for number, size in enumerate(bags.sizes):
        target[number] = group
        filled += int(size)
        if filled >= least:
            group, filled = group + 1, 0
    target = np.minimum(target, group - 1)
    sizes = np.bincount(target, weights=bags.sizes).astype(np.int64)
    positives = np.bincount(target, weights=bags.positives).astype(float)
    return CountedBags(target[bags.member], sizes, positives)


def _members(bags: ArrayLike | None, sizes: ArrayLike | None) -> tuple[Integers, Integers]:
    if (bags is None) == (sizes is None):
        raise BagDataError("Give `bags`, the id of each instance's bag, or `sizes`: exactly one.")
    if bags is not None:
        ids = np.asarray(bags)
        if ids.ndim != 1 or len(ids) == 0:
            raise BagDataError(f"`bags` must be one id per instance, got shape {ids.shape}.")
        _, member, counted = np.unique(ids, return_inverse=True, return_counts=True)
        return member.astype(np.int64), counted.astype(np.int64)
    counted = np.asarray(sizes)
    if counted.ndim != 1 or len(counted) == 0 or np.any(counted < 1) or np.any(counted % 1):
        raise BagDataError("`sizes` must hold a whole number of at least 1 for each bag.")
    counted = counted.astype(np.int64)
    return np.repeat(np.arange(len(counted)), counted), counted


def _whole_counts(share: Array, sizes: Integers) -> Array:
    positives = share * sizes
    whole = np.round(positives)
    # Written so that NaN fails too.
    good = (np.abs(positives - whole) <= COUNT_TOLERANCE * np.maximum(sizes, 1)) & (
        (whole >= 0) & (whole <= sizes)
    )
    if not good.all():
        bad = int(np.argmin(good))
        raise BagDataError(
            f"`proportions`: bag {bad} of size {sizes[bad]} has proportion {share[bad]:g}, which "
            f"is not the mean of {sizes[bad]} labels in {{0, 1}}."
        )
    return whole
