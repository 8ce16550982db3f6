"""Shares that were written with some decimals are counts, if these tell the count of every bag."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

import unbag
from unbag.bags.noise import exact_shares
from unbag.errors import BagDataWarning


@pytest.mark.parametrize(("decimals", "largest"), [(2, 99), (3, 999), (4, 9999)])
def test_counts_are_read_back(decimals, largest, rng):
    sizes = rng.integers(2, largest, 40)
    exact = rng.binomial(sizes, 0.4) / sizes
    assert (exact_shares(exact.round(decimals), sizes) == exact).all()


def test_classes_are_read_back(rng):
    counts = rng.multinomial(30, [0.2, 0.3, 0.5], 20)
    found = exact_shares((counts / 30).round(2), np.full(20, 30))
    assert (found == counts / 30).all()


@pytest.mark.parametrize(
    "shares",
    [
        pytest.param(lambda exact, rng: exact + 0.01 * rng.normal(size=40), id="noise"),
        pytest.param(lambda exact, rng: np.round(exact, 1), id="too few decimals"),
        pytest.param(lambda exact, rng: exact, id="exact"),
    ],
)
def test_other_shares_are_left_alone(shares, rng):
    given = shares(rng.binomial(25, 0.4, 40) / 25, rng)
    assert exact_shares(given, np.full(40, 25)) is given


def test_a_share_that_may_be_a_count_by_chance_is_left_alone():
    given = np.array([0.3, 0.7])
    assert exact_shares(given, np.array([3, 3])) is given


def test_random_bags_with_written_shares_are_taken_for_random(rng):
    X, ids = rng.normal(size=(1200, 3)), np.repeat(np.arange(100), 12)
    labels = rng.random(1200) < 1 / (1 + np.exp(-X[:, 0]))
    y = labels.reshape(100, 12).mean(axis=1).round(4)[ids]
    with warnings.catch_warnings():
        warnings.simplefilter("error", BagDataWarning)
        report = unbag.check_bags(X, y, bags=ids)
        found = unbag.evaluate(np.full(1200, 0.5), None, y, bags=ids, grouping="natural")
    assert report.plausible and np.isfinite(found["error"].low)


def test_a_table_with_written_shares_has_counts(rng):
    ids = np.repeat(np.arange(60), 70)
    exact = rng.binomial(70, 0.3, 60) / 70
    frame = {"x": rng.normal(size=4200), "ward": ids, "share": exact.round(3)[ids]}
    roles = unbag.Roles(bag="ward", proportions=["share"])
    table = unbag.tables.scan_table(pa.table(frame), roles)
    assert (table.index.proportions == exact).all()
