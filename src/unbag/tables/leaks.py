"""Columns that tell what is to be learned: a bag's proportion or count, by another name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.errors import TableError
from unbag.frames.encoder import Column, TableEncoder

__all__ = ["refuse_leaks"]

Array = NDArray[Any]
PRECISION = 1e-5  # of features, in standard deviations


def refuse_leaks(bags: Bags, encoder: TableEncoder) -> None:
    """Refuse a column that is the proportion or the count of its bag, or of what is left, in all.

    A model would read the labels of a bag off it, and be judged by the same labels.
    """
    told = list(_told_by_labels(bags))
    for column, feature in _numbers(bags, encoder):
        low, high = (end.reduceat(feature, bags.starts) for end in (np.minimum, np.maximum))
        if (low < high).any() or np.ptp(low) == 0:
            continue
        for what, values in told:
            gaps = np.abs((values - column.mean) / column.scale - low)
            if (gaps <= PRECISION * (1 + np.abs(low))).all():
                raise TableError(
                    f"Column {column.name!r} is {what} in every bag: a model would read the labels "
                    "off it. Leave it out with --ignore (`ignored` in Python), or name it with "
                    "--proportion, --count or --size if that is what it is."
                )


def _numbers(bags: Bags, encoder: TableEncoder) -> Iterator[tuple[Column, Array]]:
    """Columns of numbers, and their values bag by bag, standardised."""
    start = 0
    for column in encoder.used:
        if column.kind == "number":
            yield column, bags.X[bags.rows, start]
        start += len(column.features)


def _told_by_labels(bags: Bags) -> Iterator[tuple[str, Array]]:
    proportions = bags.proportions.reshape(bags.n_bags, -1)
    rest = 1 - proportions.sum(axis=1)
    for share, words in [*((p, "") for p in proportions.T), (rest, " of other labels")]:
        yield f"the proportion{words}", share
        yield f"the percentage{words}", 100 * share
        yield f"the count{words}", share * bags.sizes
