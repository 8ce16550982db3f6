"""The probability of a mismatch: exact sums, brute force, and the bound for every error."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbag.errors import ConditionError
from unbag.planning.realizable import mismatch_bound, mismatch_inverse
from unbag_paper.theory import mismatch_probability


def brute_force(error, bag_size, false_positives):
    """Sum over every sign pattern of a bag: right, false positive, false negative."""
    chances = {0: 1 - error, 1: error * false_positives, -1: error * (1 - false_positives)}
    return sum(
        np.prod([chances[sign] for sign in signs])
        for signs in product(chances, repeat=bag_size)
        if sum(signs) != 0
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.floats(0, 1), st.integers(1, 5), st.floats(0, 1))
def test_mismatch_probability_is_the_sum_over_patterns(error, bag_size, share):
    exact = mismatch_probability(error, bag_size, false_positives=share)
    assert exact == pytest.approx(brute_force(error, bag_size, share), abs=1e-12)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.floats(0, 0.5), st.floats(0, 1), st.integers(1, 40), st.floats(0, 1))
def test_the_bound_holds_for_every_error_above(least, share_above, bag_size, share):
    """No symmetric class, no k >= 11, no eps < 1/(4k), errors up to one."""
    error = least + share_above * (1 - least)
    exact = mismatch_probability(error, bag_size, false_positives=share)
    assert exact >= mismatch_bound(least, bag_size) - 1e-9


def test_the_bound_check_rejects_a_larger_bound():
    error, bag_size = 0.01, 20
    exact = mismatch_probability(error, bag_size, false_positives=0.5)
    assert exact < bag_size * error  # the union bound is not a lower bound


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(1e-9, 0.3), st.integers(1, 20))
def test_the_inverse_undoes_the_bound(error, bag_size):
    chance = float(mismatch_bound(error, bag_size))
    if chance < 0.499:
        assert mismatch_inverse(chance, bag_size) == pytest.approx(error, rel=1e-6)


def test_a_useless_probability_gives_a_useless_error():
    assert mismatch_inverse(0.5, 10) == 0.5
    assert mismatch_inverse(1.0, 10) == 0.5


def test_errors_above_one_half_are_refused():
    with pytest.raises(ConditionError, match="1/2"):
        mismatch_bound(0.6, 3)
