"""Columns that repeat what is known of bags."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unbag import BagRidgeClassifier, BagRidgeRegressor
from unbag.errors import BagDataWarning

TOLD = {
    "average": lambda rate, size: rate,
    "percentage": lambda rate, size: 100 * rate,
    "count": lambda rate, size: rate * size,
    "count of others": lambda rate, size: (1 - rate) * size,
}


@pytest.fixture
def problem(rng):
    """A frame, bags of unequal sizes, and the average and size of each row's bag."""
    bags = np.repeat(np.arange(30), rng.integers(5, 15, 30))
    x = rng.normal(size=(len(bags), 2))
    size = np.bincount(bags)
    rate = (np.bincount(bags, x[:, 0] > 0) / size)[bags]
    return pd.DataFrame(x, columns=["a", "b"]), bags, rate, size[bags]


@pytest.mark.parametrize("what", TOLD)
def test_a_column_that_tells_the_labels_of_bags_is_named(problem, what):
    frame, bags, rate, size = problem
    more = frame.assign(more=TOLD[what](rate, size))
    encoded = more.assign(text="t")
    for X in (more, encoded, pl.from_pandas(more), pl.from_pandas(encoded).to_arrow()):
        with pytest.warns(BagDataWarning, match="Column 'more' of X follows the averages"):
            BagRidgeClassifier().fit(X, rate, bags=bags)
    with pytest.warns(BagDataWarning, match="Column 2 of X follows the averages"):
        BagRidgeRegressor().fit(more.to_numpy(), rate, bags=bags)


def test_a_copy_of_the_bag_ids_is_named(problem):
    frame, bags, rate, _ = problem
    for ids in (bags, [f"bag {bag}" for bag in bags]):
        X = frame.assign(group=ids)
        with pytest.warns(BagDataWarning, match="Column 'group' of X is a copy of the bag IDs"):
            BagRidgeClassifier().fit(X, rate, bags=ids)


def test_other_columns_are_not(problem, rng):
    frame, bags, rate, size = problem
    density = rng.normal(size=30)[bags]  # one value per bag
    own = rate + rng.normal(size=len(bags)) / 100
    two = np.where(bags < 15, 0.2, 0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BagRidgeClassifier().fit(frame.assign(size=size, density=density, own=own), rate, bags=bags)
        BagRidgeClassifier().fit(frame, (rate > 0.5).astype(int))
        BagRidgeRegressor().fit(frame.assign(side=bags < 15), two, bags=bags)
