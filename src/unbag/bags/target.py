"""A target array that carries bag ids, and a cross-validation splitter that keeps bags whole."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold

from unbag.arrays import Array
from unbag.bags.noise import read_rounding
from unbag.bags.reading import read_noise
from unbag.bags.validation import (
    as_id_array,
    as_values,
    factorize,
    one_per_instance,
    values_by_bag,
)
from unbag.errors import BagDataError, SplitBagsWarning


class BagTarget(np.ndarray):
    """Bag proportion of each instance, as an array that keeps bag IDs and noise when sliced.

    With it ``GridSearchCV(pipeline, grid, cv=BagKFold(5)).fit(X, y)`` needs no metadata routing.
    Indexing, copying and pickling keep the IDs. Other operations lose them, and `fit` then raises.

    Parameters
    ----------
    bags : array of shape (n_instances,)
        Bag of each instance.
    proportions : mapping from bag ID, or array of shape (n_instances,) or (n_instances, n_outputs)
        Average label of the instance's bag. A pandas object with fewer rows than instances is
        matched by its index.
    noise_variance : float, mapping from bag ID, array of shape (n_instances,), or "rounding"
        Known variance of the noise in the proportions, see `Bags.from_arrays`. `fit`, `score` and
        all other functions that take the target read it there.

    Examples
    --------
    >>> y = BagTarget(["a", "b", "a"], {"a": 0.5, "b": 1.0})
    >>> y
    BagTarget([0.5, 1. , 0.5])
    >>> y[[0, 2]].bags
    array(['a', 'a'], dtype='<U1')
    """

    bags: Array | None
    full_sizes: Array | None
    noise_variance: Array | None

    def __new__(cls, bags: Any, proportions: Any, *, noise_variance: Any = None) -> BagTarget:
        bags = as_id_array(bags)
        codes, ids = factorize(bags)
        if one_per_instance(proportions, len(codes), len(ids)):
            values = as_values(proportions, "proportions").copy()
        else:
            table = values_by_bag(proportions) or {}
            missing = [b for b in ids if b not in table]
            if missing:
                raise BagDataError(
                    f"proportions must have a value for every bag, but bag {missing[0]!r} has none."
                )
            values = as_values([table[b] for b in ids], "proportions")[codes]
        if len(values) != len(codes):
            raise BagDataError(
                f"proportions must have one value per instance, wanted {len(codes)}, "
                f"got {len(values)}."
            )
        target = values.view(cls)
        target.bags = bags
        sizes = np.bincount(codes)
        target.full_sizes = sizes[codes]
        rows = np.argsort(codes, kind="stable")
        variance = read_noise(noise_variance, True, rows, sizes, ids)
        if isinstance(noise_variance, str):
            firsts = rows[np.cumsum(sizes) - sizes]
            variance = read_rounding(noise_variance, values[firsts], sizes)
        target.noise_variance = None if variance is None else variance[codes]
        return target

    def __array_finalize__(self, source: Any) -> None:
        self.bags = self.full_sizes = self.noise_variance = None

    def __getitem__(self, key: Any) -> Any:
        values = super().__getitem__(key)
        rows = key[0] if isinstance(key, tuple) else key
        if (
            isinstance(values, BagTarget)
            and self.bags is not None
            and rows is not None
            and np.shape(self.bags[rows]) == values.shape[:1]
        ):
            self._carry(values, rows)
        return values

    def _carry(self, target: BagTarget, rows: Any = ...) -> BagTarget:
        """Copy IDs and noise of these rows to another target."""
        for name in ("bags", "full_sizes", "noise_variance"):
            known = getattr(self, name)
            setattr(target, name, None if known is None else known[rows])
        return target

    def copy(self, order: Any = "C") -> BagTarget:
        """Copy values, ids and noise."""
        return self._carry(super().copy(order).view(BagTarget))

    def __copy__(self) -> BagTarget:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> BagTarget:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments, state = tuple(super().__reduce__())
        return make, arguments, (state, self.bags, self.full_sizes, self.noise_variance)

    def __setstate__(self, state: Any) -> None:
        values, self.bags, self.full_sizes, self.noise_variance = state
        super().__setstate__(values)


def bags_of(y: Any, bags: Any) -> Any:
    """Bag IDs: those passed, those of a `BagTarget`, or None."""
    if bags is not None or not isinstance(y, BagTarget):
        return bags
    if y.bags is None:
        raise BagDataError(
            "y is a BagTarget that lost its bag ids in an arithmetic operation or a reshape. "
            "Make it again with BagTarget(bags, proportions), or pass `bags`."
        )
    codes, _ = factorize(y.bags)
    if (np.bincount(codes)[codes] != y.full_sizes).any():
        warnings.warn(
            "y holds only part of some bags, so their proportions do not describe these rows. "
            "Split with cv=unbag.BagKFold(5), which keeps bags whole.",
            SplitBagsWarning,
            stacklevel=4,
        )
    return y.bags


def variance_of(y: Any, noise_variance: Any) -> Any:
    """Noise variance: the one passed, or that of a `BagTarget`, or None."""
    return getattr(y, "noise_variance", None) if noise_variance is None else noise_variance


def refuse_without_bags(y: Any, **given: Any) -> None:
    """Raise if there are no bags but `y` has fractions or an option for bags is passed."""
    for name, value in given.items():
        if value is not None:
            raise BagDataError(
                f"{name} describes the proportions of bags, but no bags were given. "
                f"Pass `bags`, or a BagTarget as y. Got {value!r}."
            )
    y = np.asarray(y)
    if y.dtype.kind == "f" and ((y > 0) & (y < 1)).any():
        raise BagDataError(
            "y holds fractions, which are read as proportions, but no bags were given. Unknown "
            "label type: pass `bags` or a BagTarget, or class labels for single instances."
        )


class BagKFold(GroupKFold):
    """K-fold cross-validation with whole bags, from `groups` or a `BagTarget`.

    Parameters
    ----------
    n_splits : int
        Number of folds, 2 or more.
    shuffle : bool
        Whether to assign bags to folds at random; otherwise by size, the largest first.
    random_state : int or None
        Seed of the shuffle.

    Examples
    --------
    >>> y = BagTarget([0, 0, 1, 1], [0.5, 0.5, 1.0, 1.0])
    >>> [test.tolist() for _, test in BagKFold(2).split(np.zeros(4), y)]
    [[2, 3], [0, 1]]
    """

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Generate the row numbers of the training and test part of each fold."""
        groups = bags_of(y, groups)
        if groups is None:
            raise BagDataError("BagKFold needs the bags: pass `groups`, or a BagTarget as y.")
        groups = as_id_array(groups, "groups")
        if groups.dtype == object:  # ids that cannot be sorted are numbered
            groups, _ = factorize(groups)
        if (n_bags := len(np.unique(groups))) < self.n_splits:
            raise BagDataError(
                f"n_splits must be at most the number of bags, {n_bags}, got {self.n_splits}."
            )
        yield from super().split(X, y, groups)
