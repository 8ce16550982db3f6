"""EasyLLP's certificate: it solves what it states, and its bounds hold for every law."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import convolve2d

from unbag.errors import ConditionError
from unbag_paper.exact import EasyLLP, bag_loss
from unbag_paper.theory import easy_excess_certificate, easy_offset_deviation, easy_offset_range


@pytest.mark.parametrize(("bag_size", "prior"), [(1, 0.3), (2, 0.5), (9, 0.1)])
def test_offset_range_is_exact(bag_size, prior):
    share = np.arange(bag_size + 1) / bag_size
    factor = 2 * bag_size * (share - prior) + 2 * prior - 1
    assert np.abs(factor).max() == pytest.approx(easy_offset_range(bag_size, prior))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0, 1), min_size=6, max_size=6).filter(lambda w: sum(w) > 0.1),
    st.integers(1, 8),
)
def test_easy_deviation_is_never_above_its_bound(weights, bag_size):
    """Any joint law of a label and a disagreement, summed exactly over a bag."""
    joint = np.array(weights).reshape(2, 3) / sum(weights)
    law = np.ones((1, 1))
    for _ in range(bag_size):
        law = convolve2d(law, joint)
    prior, apart = float(joint[1].sum()), float(joint[:, [0, 2]].sum())
    positives = np.arange(bag_size + 1)[:, None]
    gap = np.arange(-bag_size, bag_size + 1)[None, :] / bag_size
    offset = (2 * (positives - bag_size * prior) + 2 * prior - 1) * gap
    moment = float(np.sum(law * offset**2))
    bound = easy_offset_deviation(min(apart, 1.0), bag_size, prior=min(prior, 1.0))
    assert math.sqrt(moment) <= bound + 1e-9


@pytest.mark.parametrize("best_error", [0.0, 0.05, 0.4])
def test_bernstein_solves_its_inequality(best_error):
    n, k, size = 50_000, 10, 100
    found = easy_excess_certificate(n, k, n_hypotheses=size, best_error=best_error, prior=0.5)
    rate = math.log(size / 0.05) / n
    noise = easy_offset_deviation(2 * best_error + found, k, prior=0.5) * math.sqrt(2 * rate)
    assert found == pytest.approx(noise + (10.0 + 1) * rate / 3)


def test_an_impossible_prior_is_named():
    with pytest.raises(ConditionError, match="prior"):
        easy_excess_certificate(9, 5, n_hypotheses=3, prior=2.0)


def test_easy_rule_of_the_certificate_is_the_rule_of_the_minimiser():
    """The offset loss of the certificate is the difference of two EasyLLP losses."""
    counts, positives, size, prior = np.array([3, 1]), np.array([2, 0]), 4, 0.3
    other = np.array([1, 4])
    parts = {"sizes": np.full(2, size), "positives": positives}
    rule = EasyLLP(prior)
    factor = 2 * (positives - size * prior) + 2 * prior - 1
    offset = np.mean(factor * (counts - other) / size)
    difference = bag_loss(rule, other, **parts) - bag_loss(rule, counts, **parts)
    assert difference == pytest.approx(offset)
