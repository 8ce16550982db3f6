"""Make bags from labelled instances, and divide bags into minibatches and parts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Literal

import numpy as np

from unbag.arguments import check_choice
from unbag.arrays import Array
from unbag.bags.bags import Bags
from unbag.bags.batch import Task
from unbag.bags.target import bags_of, refuse_without_bags, variance_of
from unbag.errors import BagDataError
from unbag.randomness import numpy_generator


def make_bags(
    X: Any,
    y: Any,
    *,
    bag_size: int,
    seed: int,
    remainder: Literal["keep", "drop"] = "keep",
) -> Bags:
    """Cut a random permutation of labelled instances into bags; only proportions are kept.

    Parameters
    ----------
    X : array or tensor of shape (n_instances, ...)
    y : array of shape (n_instances,) or (n_instances, n_outputs)
        Labels 0 and 1, or one-hot rows.
    bag_size : int
    seed : int
    remainder : {"keep", "drop"}
        Whether left-over instances form a smaller last bag or are dropped.

    Examples
    --------
    >>> bags = make_bags(np.zeros((10, 1)), np.arange(10) % 2, bag_size=4, seed=0)
    >>> bags.sizes
    array([4, 4, 2])
    """
    check_choice("remainder", remainder, ("keep", "drop"))
    y = np.asarray(y)
    y = y[:, 0] if y.shape[1:] == (1,) else y
    if len(X) != len(y):
        raise BagDataError(f"X and y must have the same length, got {len(X)} and {len(y)}.")
    if not np.isin(y, (0, 1)).all():
        raise BagDataError("y must hold labels 0 and 1. Encode other labels as one-hot rows first.")
    y = y.astype(float)
    if bag_size < 1 or len(y) < 2 * bag_size:
        raise BagDataError(
            f"bag_size must give at least two bags of {len(y)} instances, got {bag_size}. "
            f"Use at most {len(y) // 2}."
        )
    rows = numpy_generator(seed, "bags").permutation(len(y))
    if remainder == "drop":
        rows = rows[: len(rows) // bag_size * bag_size]
    starts = np.arange(0, len(rows), bag_size)
    sizes = np.diff([*starts, len(rows)])
    sums = np.add.reduceat(y[rows], starts, axis=0)
    proportions = sums / sizes.reshape(-1, *[1] * (y.ndim - 1))
    task = "binary" if y.ndim == 1 else "multiclass" if (y.sum(1) == 1).all() else "multilabel"
    ids: list[Hashable] = list(range(len(sizes)))
    return Bags(X, rows, sizes, proportions, ids, None, task)  # type: ignore[arg-type]


def as_bags(
    X: Any,
    y: Any = None,
    *,
    bags: Any = None,
    noise_variance: Any = None,
    task: Task | None = None,
    weights: Any = None,
) -> Bags:
    """Return `Bags` unchanged, or make them from the arguments of `fit`.

    `X` is None if features are not needed. Without `bags`, `y` has the label of each instance.
    """
    if isinstance(y, Bags) or isinstance(bags, Bags):
        raise BagDataError("Pass a Bags as X, without y and bags, as in evaluate(scores, bags).")
    if isinstance(X, Bags):
        if any(given is not None for given in (y, bags, noise_variance, weights)):
            raise BagDataError(
                "X is a Bags, which holds its proportions, ids and noise. Pass no y, bags or "
                "noise_variance with it."
            )
        return X
    if y is None:
        raise BagDataError("y is missing: pass each instance's bag proportion, or a Bags as X.")
    ids = bags_of(y, bags)
    variance = variance_of(y, noise_variance)
    if ids is None:
        if task != "amount":
            refuse_without_bags(y, noise_variance=variance)
        ids = np.arange(len(y))
    X = np.zeros(len(y)) if X is None else X
    return Bags.from_arrays(
        X, bags=ids, y=np.asarray(y), noise_variance=variance, task=task, weights=weights
    )


def split_bags(bags: Bags, *, share: float, seed: int) -> tuple[Bags, Bags]:
    """Set a random fraction of the bags aside. Bags stay whole.

    Parameters
    ----------
    bags : Bags
        Bags to split.
    share : float
        Fraction of the bags, not of the instances, to set aside.
    seed : int
        Seed of the random choice.

    Returns
    -------
    kept, aside : Bags

    Examples
    --------
    >>> bags = make_bags(np.zeros((40, 1)), np.arange(40) % 2, bag_size=4, seed=0)
    >>> kept, aside = split_bags(bags, share=0.2, seed=0)
    >>> kept.n_bags, aside.n_bags
    (8, 2)
    """
    n_aside = round(share * bags.n_bags)
    if not 1 <= n_aside < bags.n_bags:
        raise BagDataError(
            f"share must leave at least one bag on each side, got {share} of {bags.n_bags} bags."
        )
    order = numpy_generator(seed, "split").permutation(bags.n_bags)
    return bags.take(np.sort(order[n_aside:])), bags.take(np.sort(order[:n_aside]))


def cut_batches(
    n_bags: int, *, bags_per_batch: int, seed: int | None, epoch: int = 0
) -> Iterator[Array]:
    """Cut a random order of the bags into batches whose sizes differ by at most one.

    Each `epoch` has its own order. Without a seed, bags keep their order.
    """
    order = np.arange(n_bags)
    if seed is not None:
        order = numpy_generator(seed, "batches", epoch).permutation(n_bags)
    n_batches = max(1, n_bags // bags_per_batch)
    yield from np.array_split(order, n_batches)
