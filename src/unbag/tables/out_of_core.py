"""Tables larger than memory: the means of all bags, from one pass over rows in any order."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.holdout import BagSplit
from unbag.errors import TableError
from unbag.estimators import BagRidgeClassifier
from unbag.evaluation import Estimate, estimate_risk
from unbag.parallel import Executor
from unbag.tables.index import BagIndex
from unbag.tables.reading import TableFiles
from unbag.tables.scan import CHANGED, BagTable, read_bags

# Rows of the training bags of a stack, and of the bags of each held-out part.
TRAINING_ROWS, HELD_OUT_ROWS = 500_000, 250_000


def rows_in_memory(table: BagTable, memory: int) -> tuple[int, int]:
    """Most rows for training and for a held-out part: half and a quarter of the memory."""
    rows = memory // (4 * len(table.encoder.features))
    return min(rows // 2, TRAINING_ROWS), min(rows // 4, HELD_OUT_ROWS)


class BagSums:
    """Sizes of all bags, and sums of their features in double precision, chunk by chunk."""

    def __init__(self, table: BagTable) -> None:
        self.sizes = np.zeros(table.index.n_bags, dtype=np.int64)
        self.sums = np.zeros((len(table.encoder.features), table.index.n_bags))

    def add(self, X: Array, bags: Array) -> None:
        """Add rows and the position of each row's bag."""
        n_bags = len(self.sizes)
        self.sizes += np.bincount(bags, minlength=n_bags)
        for total, feature in zip(self.sums, X.T, strict=True):
            total += np.bincount(bags, feature, n_bags)


def read_with_sums(table: BagTable, positions: Array, executor: Executor) -> tuple[Bags, Array]:
    """The bags at these positions, and the sums of all; workers add up one file each."""
    total = BagSums(table)
    files = table.source.paths if isinstance(table.source, TableFiles) else []
    if executor.n_workers == 1 or len(files) == 1:
        bags = read_bags(table, positions, visit=total.add)
    else:
        bags = read_bags(table, positions)
        for _, found in executor.finished(_sums_of_file, files, shared=table):
            total.sums += found.sums
            total.sizes += found.sizes
    if (total.sizes != table.index.sizes).any():
        raise TableError(CHANGED)
    return bags, total.sums.T


def _sums_of_file(table: BagTable, path: Path) -> BagSums:
    source: Any = copy(table.source)
    source.paths, found = [path], BagSums(table)
    for chunk in source.chunks(table.columns):
        features = table.encoder.encode_chunk(chunk, by_column=True)
        found.add(features, table.index.codes(chunk, table.roles.bag))
    return found


def better_of(
    stack: Any, index: BagIndex, sums: Array, split: BagSplit, choosing: Bags
) -> tuple[Any, Estimate, BagSplit]:
    """The stack, or a ridge on all bags if its risk on the choosing bags is lower.

    Also returns the risk of the ridge, and the split with the bags that the model was trained on.
    """
    everything, none = np.arange(index.n_bags), np.empty(0, dtype=int)
    rest = np.setdiff1d(everything, np.union1d(split.choosing, split.judging))
    ridge = _ridge(index, sums, rest)
    of_stack, of_ridge = (
        estimate_risk(model.predict_proba(choosing.X), choosing, loss="square")
        for model in (stack, ridge)
    )
    if of_stack.value <= of_ridge.value:
        return stack, of_ridge, split
    training = np.setdiff1d(everything, split.judging)
    return _ridge(index, sums, training), of_ridge, BagSplit(training, none, split.judging)


def _ridge(index: BagIndex, sums: Array, positions: Array) -> BagRidgeClassifier:
    """Closed form, from the sums of the bags at these positions."""
    sizes, noise = index.sizes[positions], index.noise_variance
    return BagRidgeClassifier().fit_means(
        sums[positions] / sizes[:, None],
        index.proportions[positions],
        sizes,
        noise_variance=None if noise is None else noise[positions],
        task=index.task,
    )
