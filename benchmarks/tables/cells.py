"""A cell of the suite: training rows of a table in bags, and test rows with their labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from catalogue import TABLES
from encoding import make_encoder

from unbag.randomness import derive_seed, numpy_generator

MAX_TEST_ROWS = 10_000
# As offices that publish averages do; and a bag of one would be a label.
MIN_NATURAL_BAG = 5


@dataclass(frozen=True)
class Cell:
    """Encoded rows: what methods learn from, and what they are judged by."""

    X: np.ndarray
    labels: np.ndarray
    bags: np.ndarray
    X_test: np.ndarray
    labels_test: np.ndarray
    seed: int

    @property
    def proportions(self) -> np.ndarray:
        """The average label of every training row's bag."""
        totals = np.bincount(self.bags, self.labels) / np.bincount(self.bags)
        return totals[self.bags]


# A worker goes through the methods of a cell in turn.
@lru_cache(maxsize=1)
def draw_cell(table: str, grouping: str, draw: int, *, rows: int, folder: Path) -> Cell:
    """Draw training and test rows of a table and cut the former into bags.

    Rows depend on the table and the draw, not on the grouping, and test rows on nothing else: at
    most a third of the table, and 10,000. Rows left over by bags of equal size are not used.
    """
    features, labels, natural = TABLES[table].load(folder)
    order = numpy_generator("table suite", table, draw).permutation(len(labels))
    n_test = min(MAX_TEST_ROWS, len(order) // 3)
    test, train = order[:n_test], order[n_test : n_test + rows]
    if grouping == "natural":
        used, bags = natural_groups(natural[train])
    else:
        used, bags = equal_bags(len(train), int(grouping))
    train = train[used]
    encoder = make_encoder(features.iloc[train])
    return Cell(
        X=encoder.fit_transform(features.iloc[train]),
        labels=labels[train],
        bags=bags,
        X_test=encoder.transform(features.iloc[test]),
        labels_test=labels[test],
        seed=derive_seed("table suite", table, grouping, draw) % 2**31,
    )


def equal_bags(n_rows: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, already in random order, in bags of equal size; which are used, and their bags."""
    used = np.arange(n_rows // size * size)
    return used, used // size


def natural_groups(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Groups of at least five rows; which rows are used, and their bags."""
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    used = np.flatnonzero(counts[inverse] >= MIN_NATURAL_BAG)
    return used, np.unique(groups[used], return_inverse=True)[1]
