"""Checks of bags. Each error names the argument, what was wanted, what came and the way out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from unbag.arrays import Array
from unbag.errors import BagDataError


def as_instances(X: Any) -> Any:
    """Return `X` as a finite numeric array; tensors are not copied."""
    if not hasattr(X, "shape") or not hasattr(X, "dtype"):
        X = np.asarray(X)
    if issparse(X):
        raise BagDataError(f"X must be dense, got a {type(X).__name__}. Pass X.toarray().")
    if isinstance(X, np.ndarray) and X.dtype.kind not in "fiub":
        raise BagDataError(
            f"X must hold numbers, got dtype {X.dtype}. Encode categories and dates first, or "
            "use the command `unbag fit`, which encodes them."
        )
    if X.shape[0] == 0:
        raise BagDataError(f"X must hold at least one instance, got shape {tuple(X.shape)}.")
    if not np.isfinite(float(X.sum())):  # a finite sum is found faster than finite rows
        rows = np.asarray(X).reshape(X.shape[0], -1)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise BagDataError(
                f"X must be finite, but row {bad[0]} holds NaN or infinity "
                f"({len(bad)} rows in all). Impute or drop those rows first."
            )
    return X


def as_values(values: Any, name: str) -> Array:
    """Return values as an array of floats; raise if they are not numbers."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise BagDataError(
            f"{name} must hold numbers, one for each class if there are several: {error}."
        ) from error


def factorize(bags: Any, *, name: str = "bags") -> tuple[Array, list[Hashable]]:
    """Number the bags in order of first appearance."""
    values = as_id_array(bags, name)
    if values.dtype != object:
        ids, first, codes = np.unique(values, return_index=True, return_inverse=True)
        rank = np.empty(len(ids), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(ids))
        return rank[codes.reshape(-1)], ids[np.argsort(first)].tolist()
    number: dict[Hashable, int] = {}
    codes = np.fromiter((number.setdefault(b, len(number)) for b in values), np.int64, len(values))
    return codes, list(number)


def as_id_array(bags: Any, name: str = "bags") -> Array:
    """Bag IDs as an array in which distinct IDs stay distinct; raise if one is missing."""
    if hasattr(bags, "to_numpy"):
        bags = bags.to_numpy()
    # Iterating over a tensor would give distinct ids only.
    values = np.asarray(bags) if hasattr(bags, "__array__") else _list_of_ids(bags)
    if values.ndim != 1:
        raise BagDataError(f"{name} must have one bag id per instance, got shape {values.shape}.")
    unknown = values != values if values.dtype != object else [_is_missing(v) for v in values]
    missing = np.flatnonzero(unknown)
    if len(missing):
        raise BagDataError(
            f"{name} must name a bag for every instance, but row {missing[0]} has none "
            f"({len(missing)} rows in all). Drop those rows, or give them a bag."
        )
    return values


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # the truth value of pandas' NA is undefined
        return True


def _list_of_ids(bags: Iterable[Any]) -> Array:
    values = list(bags)
    same_type = len({type(b) for b in values}) == 1
    if same_type and isinstance(values[0], (int, str, np.integer, float)):
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def check_constant_in_bags(
    y: Array, starts: Array, ids: list[Hashable], *, name: str = "y"
) -> Array:
    """Return the common value of each bag; `y` is sorted by bag."""
    low, high = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
    differs = ~(high - low <= 1e-9)
    bad = np.flatnonzero(differs.reshape(len(starts), -1).any(axis=1))
    if len(bad):
        first = bad[0]
        raise BagDataError(
            f"{name} must repeat one value for all instances of a bag, but bag {ids[first]!r} "
            f"has values from {low[first]} to {high[first]} ({len(bad)} such bags). Pass each "
            "instance its bag's value, or leave `bags` out if these are instance labels."
        )
    return y[starts]


def match_to_bags(
    values: Any, ids: list[Hashable], *, bag_ids: Any = None, name: str = "proportions"
) -> Array:
    """Values per bag in the order of `ids`; raise if a bag is on one side only."""
    table = values_by_bag(values, bag_ids=bag_ids, name=name)
    if table is None:
        array = as_values(values, name)
        if len(array) != len(ids):
            raise BagDataError(
                f"{name} must hold one value per bag, wanted {len(ids)}, got {len(array)}. "
                "Pass a mapping from bag id to value, or pass `bag_ids` too."
            )
        return array
    missing = [b for b in ids if b not in table]
    if missing:
        raise BagDataError(
            f"{name} must cover every bag of the instances, but bag {missing[0]!r} is missing "
            f"({len(missing)} bags in all). A pandas object is matched by its index unless "
            "`bag_ids` is passed."
        )
    known = set(ids)
    unused = [b for b in table if b not in known]
    if unused:
        raise BagDataError(
            f"{name} names bag {unused[0]!r}, which has no instances ({len(unused)} such bags). "
            "A bag cannot be empty: drop it from the bag table, or add its instances."
        )
    return as_values([table[b] for b in ids], name)


def values_by_bag(
    values: Any, *, bag_ids: Any = None, name: str = "proportions"
) -> dict[Hashable, Any] | None:
    """Values by bag ID, from a mapping, `bag_ids` or the index of a pandas object, or else None."""
    if _has_index(values):
        bag_ids = values.index if bag_ids is None else bag_ids
    elif hasattr(values, "keys"):
        return {bag: values[bag] for bag in values.keys()}  # noqa: SIM118
    if bag_ids is None:
        return None
    keys = as_id_array(bag_ids, "bag_ids").tolist()
    values = np.asarray(values)
    if len(keys) != len(values):
        raise BagDataError(
            f"bag_ids and {name} must have the same length, got {len(keys)} and {len(values)}."
        )
    table = dict(zip(keys, values, strict=True))
    if len(table) < len(keys):
        seen: set[Hashable] = set()
        twice = next(b for b in keys if b in seen or seen.add(b))  # type: ignore[func-returns-value]
        raise BagDataError(f"{name} must name each bag once, but bag {twice!r} occurs twice.")
    return table


def _has_index(values: Any) -> bool:
    """Whether values are a pandas Series or frame; the `index` of a list is a method."""
    return hasattr(getattr(values, "index", None), "to_numpy")


def one_per_instance(values: Any, n_instances: int, n_bags: int) -> bool:
    """Whether values have one row per instance rather than one per bag."""
    if not _has_index(values):
        return not hasattr(values, "keys")
    unnamed = type(values.index).__name__ == "RangeIndex"
    return len(values) == n_instances and (unnamed or n_bags < n_instances)


def reach_of_noise(variance: Array) -> Array:
    """Distance outside [0, 1] to which noise may carry a proportion.

    The largest of n draws of Laplace noise exceeds 10 + log n deviations once in a million times.
    """
    return (10 + np.log(len(variance))) * np.sqrt(variance)


def check_proportions(
    proportions: Array, sizes: Array, ids: list[Hashable], *, noise_variance: Array | None
) -> Array:
    """Raise for NaN and for values that noise cannot explain."""
    proportions = np.asarray(proportions, dtype=float)
    per_bag = proportions.reshape(len(sizes), -1)
    _refuse(~np.isfinite(per_bag), proportions, ids, "finite", "Drop those bags, or repair them.")
    way_out = (
        "Divide counts by the bag sizes and percentages by 100, or pass `noise_variance` "
        "if noise was added on purpose. Averages of amounts are for the regressors; evaluate and "
        "Bags.from_arrays take them with task='amount'."
    )
    wanted, reach = "in [0, 1]", np.zeros((len(sizes), 1))
    if noise_variance is not None:
        wanted, reach = f"{wanted} up to the stated noise", reach_of_noise(noise_variance)[:, None]
    outside = (per_bag < -reach) | (per_bag > 1 + reach)
    _refuse(outside, proportions, ids, wanted, way_out)
    return proportions


def check_amounts(amounts: Array, ids: list[Hashable], *, noise_variance: Any) -> Array:
    """Raise for averages that are not finite, and for noise stated by a word."""
    values = np.asarray(amounts, dtype=float).reshape(len(ids), -1)
    if values.shape[1] != 1:
        raise BagDataError(
            f"amounts must have one column, got {values.shape[1]}. Fit one model a column."
        )
    if isinstance(noise_variance, str):
        raise BagDataError(
            f"noise_variance must be one number, or one per bag, for amounts, got "
            f"{noise_variance!r}. Amounts rounded to a step h have the variance h**2 / 12."
        )
    _refuse(~np.isfinite(values), values, ids, "finite", "Drop those bags, or repair them.")
    return values[:, 0]


def check_proportions_differ(proportions: Array) -> None:
    """Raise if all bags have the same proportion, so that nothing can be learned."""
    if (np.ptp(proportions, axis=0) < 1e-9).all():
        shown = proportions[0] if np.size(proportions[0]) > 1 else np.ravel(proportions)[0]
        raise BagDataError(
            f"nothing to learn from: all {len(proportions)} bags have the proportion "
            f"{shown}. Check which column was read; bags must differ in their labels."
        )


def are_whole_counts(proportions: Array, sizes: Array) -> Array:
    """Whether the proportions of each bag are whole counts divided by its size."""
    counts = proportions * sizes[:, None]
    # Single precision leaves an error of 6e-8 times the size.
    return (np.abs(counts - counts.round()) <= 1e-6 * sizes[:, None]).all(axis=1)


def _refuse(bad: Array, values: Array, ids: list[Hashable], wanted: str, way_out: str) -> None:
    rows = np.flatnonzero(bad.any(axis=1))
    if len(rows):
        raise BagDataError(
            f"proportions must be {wanted}, but bag {ids[rows[0]]!r} has {values[rows[0]]} "
            f"({len(rows)} such bags). {way_out}"
        )
