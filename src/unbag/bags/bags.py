"""`Bags`: instances, the bag of each instance, and each bag's proportion, validated once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unbag.arrays import Array
from unbag.bags import validation
from unbag.bags.batch import Task
from unbag.bags.noise import (
    check_noise_shows,
    exact_shares,
    read_rounding,
    warn_of_rounding,
)
from unbag.bags.reading import read_ids, read_noise, read_ranges, read_values, read_weights
from unbag.bags.tasks import find_task
from unbag.errors import BagDataError


@dataclass(frozen=True, eq=False, repr=False)
class Bags:
    """Instances in bags with known proportions, made by `Bags.from_arrays` or `make_bags`.

    Attributes
    ----------
    X : array or tensor of shape (n_instances, ...)
        The instances in their original order, not copied.
    rows : array of shape (n_instances,)
        Row numbers of `X`, bag by bag.
    sizes : array of shape (n_bags,)
        Number of instances of each bag.
    proportions : array of shape (n_bags,) or (n_bags, n_outputs)
        Average label of each bag.
    ids : list of length n_bags
        ID of each bag.
    noise_variance : array of shape (n_bags,), optional
        Known variance of the noise in the proportions.
    task : {"binary", "multiclass", "multilabel", "amount"}
        Kind of label. For "amount" the proportions are averages of real numbers.
    weights : array of shape (n_instances,), optional
        For amounts: weight of each row of `X` in the average of its bag, such as its exposure.
    ranges : array of shape (n_bags, 2), optional
        Smallest and largest possible count of each bag, if only ranges are known; proportions are
        then their midpoints.
    """

    X: Any
    rows: Array
    sizes: Array
    proportions: Array
    ids: list[Hashable]
    noise_variance: Array | None = None
    task: Task = "binary"
    weights: Array | None = None
    ranges: Array | None = None

    def __repr__(self) -> str:
        noise = "" if self.noise_variance is None else ", noisy"
        return f"Bags({self.n_bags} bags, {self.n_instances} instances, {self.task}{noise})"

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
        sums: Any = None,
        bag_ids: Any = None,
        noise_variance: Any = None,
        task: Task | None = None,
        weights: Any = None,
        upper: Any = None,
    ) -> Bags:
        """Make bags from arrays, with rows in any order.

        Parameters
        ----------
        X : array, tensor or data frame of shape (n_instances, ...)
            The instances.
        bags : array of shape (n_instances,), optional
            Bag ID of each instance, of any hashable type. Pass this or `offsets`.
        offsets : array of shape (n_bags + 1,), optional
            Bag ``i`` is rows ``offsets[i]`` to ``offsets[i + 1]`` of `X`.
        y : array of shape (n_instances,) or (n_instances, n_outputs), optional
            Bag proportion of each instance. Pass exactly one of `y`, `proportions` and `counts`.
        proportions, counts : mapping from bag ID, or array of shape (n_bags, ...), optional
            Average label, or number of positive labels, of each bag. An array is matched by
            `bag_ids`, or else in order of the bags' first appearance. A pandas object is matched by
            its index.
        sums : mapping from bag ID, or array of shape (n_bags,), optional
            Sum of the amounts of each bag, instead of counts.
        bag_ids : array of shape (n_bags,), optional
            Bag IDs for an array of proportions, counts or noise variances.
        noise_variance : float, mapping, array or "rounding", optional
            Known variance of independent zero-mean noise in the proportions, counts or sums,
            whichever is passed. An array has one value per instance with `y`, and one per bag
            otherwise. "rounding" detects the step of rounded proportions and takes its square
            divided by 12.
        task : {"binary", "multiclass", "multilabel", "amount"}, optional
            By default inferred: one column is binary, several columns that sum to one (up to
            rounding and known noise) are multiclass, others multilabel, `sums` are amounts.
        weights : array of shape (n_instances,), optional
            For amounts: weight of each instance in the average of its bag. Averages are then
            weighted means, and `sums` are divided by the sum of the weights. With exposures as
            weights and numbers of events as sums, averages are rates.
        upper : like the proportions or counts, optional
            Upper end of ranges such as "under 5" or "10 to 20 %". `y`, `proportions` or `counts`
            are then the lower ends.

        Raises
        ------
        BagDataError
            If the arrays do not describe bags. Nothing is dropped or clipped.

        Examples
        --------
        >>> X = [[0.1], [0.9], [0.2], [0.7]]
        >>> bags = Bags.from_arrays(X, bags=["n", "s", "n", "s"], counts={"n": 0, "s": 1})
        >>> bags.sizes, bags.proportions
        (array([2, 2]), array([0. , 0.5]))
        """
        X = validation.as_instances(X)
        codes, ids = read_ids(bags, offsets, len(X))
        sizes = np.bincount(codes, minlength=len(ids))
        rows = np.argsort(codes, kind="stable")
        if sums is not None:
            if counts is not None or task not in (None, "amount"):
                raise BagDataError(
                    f"sums need task='amount' and no counts, got {task!r} and counts={counts!r}."
                )
            counts, task = sums, "amount"
        weights, totals = read_weights(weights, rows, sizes, task)
        variance = read_noise(noise_variance, y is not None, rows, sizes, ids, bag_ids)
        exact, total = variance is None and task != "amount", "counts" if sums is None else "sums"
        given = [y, proportions, counts]
        divisors = sizes if counts is None else totals
        values = read_values(given, rows, divisors, ids, bag_ids, exact=exact, total=total)
        if counts is not None and variance is not None:
            variance = variance / totals**2
        if task == "amount" and upper is None:
            values = validation.check_amounts(values, ids, noise_variance=noise_variance)
            return cls(X, rows, sizes, values, ids, variance, task, weights)
        ranges = None
        if upper is not None:
            given = [None if value is None else upper for value in given]
            high = read_values(given, rows, sizes, ids, bag_ids, exact=True, total="upper")
            ranges = read_ranges(values, high, sizes, ids, noise_variance=noise_variance, task=task)
            values = ranges.mean(axis=1) / sizes
        values = validation.check_proportions(values, sizes, ids, noise_variance=variance)
        if isinstance(noise_variance, str):
            variance = read_rounding(noise_variance, values, sizes)
        elif variance is None and ranges is None:
            values = exact_shares(values, sizes)
            warn_of_rounding(values, sizes, ids)
        check_noise_shows(values, sizes, variance)
        if values.shape[1:] == (1,) and task != "multilabel":
            values = values[:, 0]
        task = find_task(values, sizes, noise_variance=variance, task=task)
        return cls(X, rows, sizes, values, ids, variance, task, ranges=ranges)

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
        return 1 if self.task in ("binary", "amount") else self.proportions.shape[1]

    @cached_property
    def starts(self) -> Array:
        """Position in `rows` of each bag's first instance."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    @cached_property
    def bag_of_row(self) -> Array:
        """Position of each row's bag; -1 for a row in no bag.

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

    @cached_property
    def totals(self) -> Array:
        """Sum of the weights of each bag; without weights, its size."""
        return self.sizes if self.weights is None else self._sum(self.weights)

    @property
    def effective_sizes(self) -> Array:
        r"""Number of equal weights whose mean varies as much, :math:`(\sum w)^2 / \sum w^2`."""
        if self.weights is None:
            return self.sizes.astype(float)
        return np.asarray(self.totals**2 / self._sum(self.weights**2))

    @property
    def prior(self) -> Array:
        """Estimated marginal label proportion: the mean proportion, weighted by bag size."""
        return np.average(self.proportions, axis=0, weights=self.totals)

    def rows_of(self, positions: Array) -> Array:
        """Row numbers in `X` of the instances of these bags, bag by bag."""
        sizes = self.sizes[positions]
        shift = np.repeat(self.starts[positions] - np.cumsum(sizes) + sizes, sizes)
        return self.rows[shift + np.arange(sizes.sum())]

    def take(self, positions: Array) -> Bags:
        """Select bags by position; `X` is shared, not copied.

        Examples
        --------
        >>> bags = Bags.from_arrays(np.eye(4), bags=[0, 0, 1, 2], y=[0.5, 0.5, 1, 0])
        >>> bags.take(np.array([2, 0])).ids
        [2, 0]
        """
        positions = np.asarray(positions)
        noise, ranges = self.noise_variance, self.ranges
        return replace(
            self,
            rows=self.rows_of(positions),
            sizes=self.sizes[positions],
            proportions=self.proportions[positions],
            ids=[self.ids[i] for i in positions],
            noise_variance=None if noise is None else noise[positions],
            ranges=None if ranges is None else ranges[positions],
        )

    def gathered(self) -> Bags:
        """The same bags with a copy of their own instances, bag by bag.

        Examples
        --------
        >>> bags = Bags.from_arrays(np.arange(3), bags=["a", "b", "a"], y=[1, 0, 1])
        >>> bags.gathered().X
        array([0, 2, 1])
        """
        weights = None if self.weights is None else self.weights[self.rows]
        return replace(self, X=self.X[self.rows], rows=np.arange(self.n_instances), weights=weights)

    def mean(self, values: Array) -> Array:
        """Weighted mean over each bag of values in the order of `X`."""
        values = np.asarray(values)
        extra = [1] * (values.ndim - 1)
        if self.weights is not None:
            values = values * self.weights.reshape(-1, *extra)
        return np.asarray(self._sum(values) / self.totals.reshape(-1, *extra))

    def _sum(self, values: Array) -> Array:
        return np.add.reduceat(values[self.rows], self.starts, axis=0)
