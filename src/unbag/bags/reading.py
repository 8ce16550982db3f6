"""Read the arguments of `Bags.from_arrays`: bag IDs, proportions and noise."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from unbag.arrays import Array
from unbag.bags import validation
from unbag.errors import BagDataError


def in_class_order(y: Any, classes: Any) -> Any:
    """Columns of a frame in the order of named classes; anything else as it is."""
    wanted, names = np.asarray(classes).tolist(), list(getattr(y, "columns", ()))
    if len(names) < 2 or not all(isinstance(name, str) for name in [*names, *wanted]):
        return y
    if set(names) != set(wanted):
        raise BagDataError(f"y must have the columns {wanted}, one per class, got {names}.")
    return y[wanted]


def read_ids(bags: Any, offsets: Any, n_instances: int) -> tuple[Array, list[Hashable]]:
    """Position of each instance's bag, and the IDs of the bags."""
    if (bags is None) == (offsets is None):
        raise BagDataError("Pass either `bags` (one id per instance) or `offsets`, and not both.")
    if offsets is None:
        codes, ids = validation.factorize(bags)
    else:
        codes, ids = _read_offsets(np.asarray(offsets), n_instances)
    if len(codes) != n_instances:
        raise BagDataError(
            f"bags must have one id per instance, wanted {n_instances}, got {len(codes)}."
        )
    if len(ids) < 2:
        raise BagDataError(
            f"bags must name at least two bags, got only {ids[0]!r} (n_bags = 1). One proportion "
            "carries no information on single instances."
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


def read_values(
    given: list[Any],
    rows: Array,
    sizes: Array,
    ids: list[Hashable],
    bag_ids: Any,
    *,
    exact: bool,
    total: str,
) -> Array:
    """Proportion of each bag, from whichever of `y`, `proportions` and `counts` is given."""
    y, proportions, counts = given
    if sum(value is not None for value in given) != 1:
        raise BagDataError("Pass exactly one of `y`, `proportions` and `counts`.")
    if proportions is not None:
        return validation.match_to_bags(proportions, ids, bag_ids=bag_ids)
    if counts is not None:
        values = validation.match_to_bags(counts, ids, bag_ids=bag_ids, name=total)
        if exact:
            _check_label_counts(values, sizes, ids)
        return values / sizes.reshape(-1, *[1] * (values.ndim - 1))
    y = validation.as_values(y, "y")
    if len(y) != len(rows):
        raise BagDataError(f"y must have one value per instance, wanted {len(rows)}, got {len(y)}.")
    y, starts = y[rows], _starts(sizes)
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
            f"{sizes[first]} instances has {counts[first]} ({bad.sum()} such bags). Check that no "
            "instance of the bag is missing, or pass `noise_variance` if noise was added."
        )


def read_noise(
    noise_variance: Any,
    per_instance: bool,
    rows: Array,
    sizes: Array,
    ids: list[Hashable],
    bag_ids: Any = None,
) -> Array | None:
    """Noise variance of each bag, in any form that `Bags.from_arrays` accepts.

    None without noise, and for a word, which `read_rounding` handles.
    """
    if noise_variance is None or isinstance(noise_variance, str):
        return None
    if np.ndim(noise_variance) == 0 and not hasattr(noise_variance, "keys"):
        variance = np.full(len(ids), validation.as_values(noise_variance, "noise_variance"))
    elif per_instance and validation.one_per_instance(noise_variance, len(rows), len(ids)):
        values, starts = validation.as_values(noise_variance, "noise_variance"), _starts(sizes)
        if values.shape != (len(rows),):
            raise BagDataError(
                f"noise_variance must have one value per instance, like y, wanted {len(rows)}, got "
                f"shape {values.shape}. Repeat each bag's variance for its instances, or pass a "
                "mapping from bag id to variance."
            )
        variance = validation.check_constant_in_bags(
            values[rows], starts, ids, name="noise_variance"
        )
    else:
        variance = validation.match_to_bags(
            noise_variance, ids, bag_ids=bag_ids, name="noise_variance"
        )
    bad = np.flatnonzero(~(np.isfinite(variance) & (variance >= 0)))
    if len(bad):
        raise BagDataError(
            f"noise_variance must be finite and not negative, but bag {ids[bad[0]]!r} has "
            f"{variance[bad[0]]}. Zero means an exact proportion."
        )
    return variance if variance.any() else None


def read_ranges(
    low: Array,
    high: Array,
    sizes: Array,
    ids: list[Hashable],
    *,
    noise_variance: Any = None,
    task: Any = None,
) -> Array:
    """Smallest and largest whole count of each bag, from proportions."""
    if task == "amount" or low.ndim > 1 or high.ndim > 1 or noise_variance is not None:
        raise BagDataError(
            f"upper needs one label and no noise, got task={task!r}, shapes {low.shape} "
            f"and {high.shape}, and noise_variance={noise_variance!r}."
        )
    validation.check_proportions(low, sizes, ids, noise_variance=None)
    validation.check_proportions(high, sizes, ids, noise_variance=None)
    counts = np.abs(np.ceil(sizes * low - 1e-6)), np.floor(sizes * high + 1e-6)
    empty = np.flatnonzero(counts[0] > counts[1])
    if len(empty):
        first = empty[0]
        raise BagDataError(
            f"upper must leave a whole count in every bag, but bag {ids[first]!r} of "
            f"{sizes[first]} instances has the range {low[first]:g} to {high[first]:g} "
            f"({len(empty)} such bags)."
        )
    return np.stack(counts, axis=1)


def read_weights(weights: Any, rows: Array, sizes: Array, task: Any) -> tuple[Array | None, Array]:
    """Weight of each instance, and their sum in each bag; without weights, its size."""
    if weights is None:
        return None, sizes
    if task != "amount":
        raise BagDataError(
            f"weights need task='amount', got task={task!r}. A share of labels is an unweighted "
            "mean. If its instances are weighted, pass it as an amount."
        )
    values = validation.as_values(weights, "weights")
    good = np.isfinite(values) & (values > 0)
    if values.shape != (len(rows),) or not good.all():
        raise BagDataError(
            f"weights must be {len(rows)} finite numbers above zero, one per instance, got shape "
            f"{values.shape}, of which {good.sum()} are such. Drop instances of weight zero."
        )
    return values, np.add.reduceat(values[rows], _starts(sizes))


def read_blocks(blocks: Any, bags: Array, ids: list[Hashable]) -> Array | None:
    """Number of each bag's block, from a mapping by bag, or one block per instance or per bag.

    `bags` holds the position of each instance's bag.
    """
    if blocks is None:
        return None
    named = hasattr(blocks, "keys") and validation.values_by_bag(blocks, name="blocks")
    if named:
        missing = [b for b in ids if b not in named]
        if missing:
            raise BagDataError(f"blocks has no block for bag {missing[0]!r}.")
        blocks = [named[b] for b in ids]
    codes = validation.factorize(blocks, name="blocks")[0]
    if len(codes) == len(ids):
        return codes
    if len(codes) != len(bags):
        raise BagDataError(
            f"blocks must have one value per bag, {len(ids)}, or per instance, {len(bags)}, got "
            f"{len(codes)}."
        )
    order = np.argsort(bags, kind="stable")
    starts = np.searchsorted(bags[order], np.arange(len(ids)))
    return validation.check_constant_in_bags(codes[order], starts, ids, name="blocks")


def _starts(sizes: Array) -> Array:
    return np.cumsum(sizes) - sizes
