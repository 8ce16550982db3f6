"""Moments of rows beside numpy's own in double precision."""

import numpy as np
import pytest

from unbag.tables.moments import LANES, moments_of_rows


def wrong_by(X):
    """Largest errors of mean and spread, as shares of the deviation and of the spread."""
    count, mean, spread = moments_of_rows(X)
    exact = X.astype(np.float64)
    assert count == len(X)
    off = np.abs(mean.numpy() - exact.mean(axis=0)) / np.maximum(exact.std(axis=0), 1e-30)
    return off.max(), np.abs(spread.numpy() / (len(X) * exact.var(axis=0)) - 1).max()


@pytest.mark.parametrize("n_rows", [2, 63, 64, 65, 200, 128 * 64, 20_001])
@pytest.mark.parametrize("mean", [0.0, 1.0, 100.0])
def test_they_are_those_of_doubles_whatever_the_number_of_rows(rng, n_rows, mean):
    X = rng.normal(mean, [0.5, 1, 2], size=(n_rows, 3)).astype(np.float32)
    off, stretched = wrong_by(X)
    assert off < 1e-5 * max(mean, 1) and stretched < 1e-5


def test_lanes_may_differ_though_all_rows_of_each_are_the_same(rng):
    assert wrong_by(np.tile(rng.normal(size=(LANES, 3)), (3, 1)))[1] < 1e-9


def test_a_constant_has_no_spread():
    _, mean, spread = moments_of_rows(np.full((1000, 2), 0.1, dtype=np.float32))
    np.testing.assert_allclose(mean, 0.1, rtol=1e-6)
    assert spread.max() < 1e-9
