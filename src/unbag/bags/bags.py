"""`Bags`: instances, which bag each belongs to, and each bag's proportion; validated once, here."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import validation
from unbag.bags.batch import Task
from unbag.bags.tasks import find_task
from unbag.errors import BagDataError

__all__ = ["Bags", "read_noise"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Bags:
    """Instances in bags with known proportions. Make one with `Bags.from_arrays` or `make_bags`.

    Attributes
    ----------
    X : array or tensor of shape (n_instances, ...)
        The instances, in the order they came; never copied.
    rows : array of shape (n_instances,)
        Row numbers of `X`, bag by bag.
    sizes : array of shape (n_bags,)
        Instances in each bag.
    proportions : array of shape (n_bags,) or (n_bags, n_outputs)
        Average label of each bag.
    ids : list of length n_bags
        What the user calls each bag.
    noise_variance : array of shape (n_bags,), optional
        Known variance of the noise in the proportions.
    task : {"binary", "multiclass", "multilabel"}
        What the proportions are proportions of.
    """

    X: Any
    rows: Array
    sizes: Array
    proportions: Array
    ids: list[Hashable]
    noise_variance: Array | None = None
    task: Task = "binary"

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        *,
        bags: Any = None,
        offsets: Any = None,
        y: Any = None,
        proportions: Any = None,
        counts: Any = None,
        bag_ids: Any = None,
        noise_variance: Any = None,
        task: Task | None = None,
    ) -> Bags:
        """Read bags from arrays, in any order of rows.

        Parameters
        ----------
        X : array, tensor or data frame of shape (n_instances, ...)
            The instances.
        bags : array of shape (n_instances,), optional
            Bag of each instance: anything hashable. Give this or `offsets`.
        offsets : array of shape (n_bags + 1,), optional
            Bag ``i`` is rows ``offsets[i]`` to ``offsets[i + 1]`` of `X`.
        y : array of shape (n_instances,) or (n_instances, n_outputs), optional
            Each instance's bag proportion. Give one of `y`, `proportions` and `counts`.
        proportions, counts : mapping from bag id, or array of shape (n_bags, ...), optional
            Average label, or number of positive labels, of each bag. An array goes with `bag_ids`,
            or else is in order of the bags' first appearance; a pandas Series or frame goes by its
            index.
        bag_ids : array of shape (n_bags,), optional
            Ids that go with an array of proportions, counts or noise variances.
        noise_variance : float, mapping or array, optional
            Known variance of independent zero-mean noise in the proportions. An array is like
            what it goes with: beside `y` one value per instance, otherwise one per bag.
        task : {"binary", "multiclass", "multilabel"}, optional
            None reads it off the proportions: one column is binary, several that add up to one, as
            well as rounding and known noise allow, are multiclass, others multilabel.

        Raises
        ------
        BagDataError
            If the arrays do not describe bags; nothing is dropped or clipped.

        Examples
        --------
        >>> X = [[0.1], [0.9], [0.2], [0.7]]
        >>> bags = Bags.from_arrays(X, bags=["n", "s", "n", "s"], counts={"n": 0, "s": 1})
        >>> bags.sizes, bags.proportions
        (array([2, 2]), array([0. , 0.5]))
        """
        X = validation.as_instances(X)
        codes, ids = _read_ids(bags, offsets, len(X))
        sizes = np.bincount(codes, minlength=len(ids))
        _check_counts_of_bags(sizes, ids)
        rows = np.argsort(codes, kind="stable")
        values = _read_values(y, proportions, counts, rows, sizes, ids, bag_ids)
        variance = read_noise(noise_variance, y is not None, rows, sizes, ids, bag_ids)
        values = validation.check_proportions(values, sizes, ids, noise_variance=variance)
        if values.shape[1:] == (1,) and task != "multilabel":
            values = values[:, 0]
        task = find_task(values, sizes, noise_variance=variance, task=task)
        return cls(X, rows, sizes, values, ids, variance, task)

    @property
    def n_bags(self) -> int:
        """Number of bags."""
        return len(self.sizes)

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self.rows)

    @property
    def n_outputs(self) -> int:
        """Number of logits a model needs."""
        return 1 if self.task == "binary" else self.proportions.shape[1]

    @cached_property
    def starts(self) -> Array:
        """Position in `rows` of each bag's first instance."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    @cached_property
    def bag_of_row(self) -> Array:
        """Position of the bag that each row of `X` is in; -1 for a row in no bag.

        Examples
        --------
        >>> Bags.from_arrays(np.eye(3), bags=["a", "b", "a"], y=[1, 0, 1]).bag_of_row
        array([0, 1, 0])
        """
        positions = np.full(len(self.X), -1)
        positions[self.rows] = np.repeat(np.arange(self.n_bags), self.sizes)
        return positions

    @property
    def equal_size(self) -> int | None:
        """The common bag size, or None if sizes differ."""
        return int(self.sizes[0]) if (self.sizes == self.sizes[0]).all() else None

    @property
    def prior(self) -> Array:
        """Estimated label proportion of an instance: the bags' average weighted by size."""
        return np.average(self.proportions, axis=0, weights=self.sizes)

    def rows_of(self, positions: Array) -> Array:
        """Row numbers of `X` for the instances of these bags, bag by bag."""
        sizes = self.sizes[positions]
        shift = np.repeat(self.starts[positions] - np.cumsum(sizes) + sizes, sizes)
        return self.rows[shift + np.arange(sizes.sum())]

    def take(self, positions: Array) -> Bags:
        """Some of the bags, by position; `X` is shared, not copied.

        Examples
        --------
        >>> bags = Bags.from_arrays(np.eye(4), bags=[0, 0, 1, 2], y=[0.5, 0.5, 1, 0])
        >>> bags.take(np.array([2, 0])).ids
        [2, 0]
        """
        positions = np.asarray(positions)
        noise = None if self.noise_variance is None else self.noise_variance[positions]
        return Bags(
            self.X,
            self.rows_of(positions),
            self.sizes[positions],
            self.proportions[positions],
            [self.ids[i] for i in positions],
            noise,
            self.task,
        )

    def mean(self, values: Array) -> Array:
        """Average per-instance values, in the order of `X`, over each bag."""
        sums = np.add.reduceat(np.asarray(values)[self.rows], self.starts, axis=0)
        return sums / self.sizes.reshape(-1, *[1] * (sums.ndim - 1))


def _read_ids(bags: Any, offsets: Any, n_instances: int) -> tuple[Array, list[Hashable]]:
    if (bags is None) == (offsets is None):
        raise BagDataError("Give either `bags` (an id per instance) or `offsets`, and not both.")
    if offsets is not None:
        return _read_offsets(np.asarray(offsets), n_instances)
    codes, ids = validation.factorize(bags)
    if len(codes) != n_instances:
        raise BagDataError(
            f"bags must have one id per instance, wanted {n_instances}, got {len(codes)}."
        )
    return codes, ids


def _read_offsets(offsets: Array, n_instances: int) -> tuple[Array, list[Hashable]]:
    if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != n_instances:
        raise BagDataError(
            f"offsets must run from 0 to the number of instances, {n_instances}, got {offsets}."
        )
    sizes = np.diff(offsets)
    if (sizes <= 0).any():
        first = int(np.flatnonzero(sizes <= 0)[0])
        raise BagDataError(f"offsets must increase, but bag {first} has size {sizes[first]}.")
    return np.repeat(np.arange(len(sizes)), sizes), list(range(len(sizes)))


def _check_counts_of_bags(sizes: Array, ids: list[Hashable]) -> None:
    if len(sizes) < 2:
        raise BagDataError(
            f"bags must name at least two bags, got only {ids[0]!r} (n_bags = 1). One proportion "
            "tells nothing about single instances."
        )


def _read_values(
    y: Any,
    proportions: Any,
    counts: Any,
    rows: Array,
    sizes: Array,
    ids: list[Hashable],
    bag_ids: Any,
) -> Array:
    if sum(v is not None for v in (y, proportions, counts)) != 1:
        raise BagDataError("Give exactly one of `y`, `proportions` and `counts`.")
    if proportions is not None:
        return validation.match_to_bags(proportions, ids, bag_ids=bag_ids)
    if counts is not None:
        values = validation.match_to_bags(counts, ids, bag_ids=bag_ids, name="counts")
        _check_label_counts(values, sizes, ids)
        return values / sizes.reshape(-1, *[1] * (values.ndim - 1))
    y = validation.as_values(y, "y")
    if len(y) != len(rows):
        raise BagDataError(f"y must have one value per instance, wanted {len(rows)}, got {len(y)}.")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    y = y[rows]
    bad = np.flatnonzero(~np.isfinite(y.reshape(len(y), -1)).all(axis=1))
    if len(bad):
        bag = ids[int(np.searchsorted(starts, bad[0], side="right")) - 1]
        raise BagDataError(
            f"y must be finite, but row {rows[bad[0]]} (bag {bag!r}) has {y[bad[0]]}. "
            "Drop the bags without a proportion."
        )
    return validation.check_constant_in_bags(y, starts, ids)


def _check_label_counts(counts: Array, sizes: Array, ids: list[Hashable]) -> None:
    per_bag = counts.reshape(len(sizes), -1)
    bad = ~((per_bag >= 0) & (per_bag <= sizes[:, None])).all(axis=1)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise BagDataError(
            f"counts must lie between 0 and the bag's size, but bag {ids[first]!r} of "
            f"{sizes[first]} instances has {counts[first]} ({bad.sum()} such bags). Check that all "
            "instances of the bag are there."
        )


def read_noise(
    noise_variance: Any,
    per_instance: bool,
    rows: Array,
    sizes: Array,
    ids: list[Hashable],
    bag_ids: Any = None,
) -> Array | None:
    """Noise variance of each bag, from any of the forms that `Bags.from_arrays` takes.

    None if there is no noise.
    """
    if noise_variance is None:
        return None
    if np.ndim(noise_variance) == 0 and not hasattr(noise_variance, "keys"):
        variance = np.full(len(ids), validation.as_values(noise_variance, "noise_variance"))
    elif per_instance and validation.one_per_instance(noise_variance, len(rows), len(ids)):
        per_row = validation.check_one_per_instance(noise_variance, len(rows))[rows]
        starts = np.cumsum(sizes) - sizes
        variance = validation.check_constant_in_bags(per_row, starts, ids, name="noise_variance")
    else:
        variance = validation.match_to_bags(
            noise_variance, ids, bag_ids=bag_ids, name="noise_variance"
        )
    return validation.check_noise_variance(variance, ids)
