"""Laws of the rules on counts, and the errors for bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper.tests.support.exact_reference import RULES

from unbag.errors import BagDataError, ConditionError
from unbag_paper.exact import (
    EPRM,
    CountDebiasedSquare,
    CountProportionSquare,
    EasyLLP,
    bag_loss,
    minimise_finite,
    minimise_intervals,
    minimise_stumps,
    minimise_thresholds,
)

counted = st.integers(2, 6).flatmap(
    lambda n: st.integers(1, 8).flatmap(
        lambda k: st.tuples(
            st.just(k),
            st.lists(st.integers(0, k), min_size=n, max_size=n),
            st.lists(st.integers(0, k), min_size=n, max_size=n),
        )
    )
)


def losses(k, counts, positives):
    sizes = np.full(len(counts), k)
    parts = {"sizes": sizes, "positives": np.array(positives)}
    square = k * float(bag_loss(CountProportionSquare(), np.array(counts), **parts))
    batch = float(bag_loss(CountDebiasedSquare("batch"), np.array(counts), **parts))
    pairwise = float(bag_loss(CountDebiasedSquare(), np.array(counts), **parts))
    return square, batch, pairwise


@settings(max_examples=500, deadline=None, derandomize=True)
@given(counted)
def test_the_lemma_on_square_and_debiased_loss(problem):
    k, counts, positives = problem
    square, batch, pairwise = losses(k, counts, positives)
    gap = (np.array(counts) - positives) / k
    bias = (k - 1) * gap.mean() ** 2
    assert bias <= (k - 1) / k * square + 1e-12
    assert batch >= -1e-12
    assert square <= k * batch + 1e-9
    assert batch == pytest.approx(square - bias, abs=1e-9)
    assert pairwise == pytest.approx((gap**2).mean() + (k - 1) * gap.var(ddof=1), abs=1e-9)


def test_the_lemma_check_rejects_a_loss_without_its_factor():
    square, batch, _ = losses(4, [4, 4], [0, 0])
    assert square > batch  # k = 4 times the debiased loss, not once


@settings(max_examples=200, deadline=None, derandomize=True)
@given(counted)
def test_realizable_minimisers_of_three_rules_are_the_same(problem):
    k, counts, positives = problem
    zero = [np.isclose(value, 0) for value in losses(k, counts, positives)]
    missed = counts != positives
    assert zero == [not missed] * 3


@pytest.mark.parametrize("name", ["pairwise", "easy known"])
def test_unbiased_rules_average_to_the_error_on_unequal_bags(name):
    """Every labeling of bags of sizes 1, 2 and 3, weighted by its probability."""
    sizes, rate, chance = np.array([1, 2, 3]), 0.25, 0.6
    draws = (np.arange(4**6)[:, None] >> np.arange(12)) & 1
    labels, predictions = draws[:, :6], draws[:, 6:]
    weights = np.prod(np.where(labels, rate, 1 - rate), axis=1)
    weights *= np.prod(np.where(predictions, chance, 1 - chance), axis=1)
    counts = np.add.reduceat(predictions, [0, 1, 3], axis=1)
    positives = np.add.reduceat(labels, [0, 1, 3], axis=1)
    values = bag_loss(RULES[name], counts, sizes=sizes, positives=positives)
    assert weights @ values == pytest.approx(rate * (1 - chance) + (1 - rate) * chance)


def test_the_unbiasedness_check_rejects_the_batch_rule():
    sizes = np.array([1, 1])
    draws = (np.arange(4)[:, None] >> np.arange(2)) & 1
    values = bag_loss(CountDebiasedSquare("batch"), np.zeros((4, 2)), sizes=sizes, positives=draws)
    pairwise = bag_loss(CountDebiasedSquare(), np.zeros((4, 2)), sizes=sizes, positives=draws)
    assert pairwise.mean() == pytest.approx(0.5)
    assert values.mean() == pytest.approx(0.5)  # k = 1 needs no correction
    sizes = np.array([2, 2])
    draws = ((np.arange(16)[:, None] >> np.arange(4)) & 1).reshape(16, 2, 2).sum(axis=2)
    values = bag_loss(CountDebiasedSquare("batch"), np.zeros((16, 2)), sizes=sizes, positives=draws)
    assert values.mean() < 0.5 - 0.01


def test_values_of_callables_and_matrices_agree():
    x = np.array([0.1, 0.7, 0.4, 0.9])
    matrix = [(x > t).astype(int) for t in (0.3, 0.5)]
    functions = [lambda x, t=t: (np.asarray(x) > t).astype(int) for t in (0.3, 0.5)]
    one = minimise_finite(matrix, [0.5, 0.5], sizes=[2, 2], rule=EPRM())
    two = minimise_finite(functions, [0.5, 0.5], sizes=[2, 2], rule=EPRM(), X=x)
    assert one.values.tolist() == two.values.tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: minimise_finite([], [0.5], sizes=[2], rule=EPRM()), ConditionError, "empty"),
        (
            lambda: minimise_finite([[0, 2]], [0.5], sizes=[2], rule=EPRM()),
            ConditionError,
            "{0, 1}",
        ),
        (lambda: minimise_finite([[0, 1]], [0.3], sizes=[2], rule=EPRM()), BagDataError, "{0, 1}"),
        (lambda: minimise_finite([[0, 1]], [1.5], sizes=[2], rule=EPRM()), BagDataError, "{0, 1}"),
        (
            lambda: minimise_finite([[0, 1]], [float("nan")], sizes=[2], rule=EPRM()),
            BagDataError,
            "{0, 1}",
        ),
        (lambda: minimise_finite([[0, 1]], [0.5], rule=EPRM()), BagDataError, "exactly one"),
        (
            lambda: minimise_finite([[0, 1]], [1, 1, 0], sizes=[1, 1], rule=EPRM()),
            BagDataError,
            "one",
        ),
        (
            lambda: minimise_finite([[0]], [0.5], sizes=[2], rule=EPRM()),
            ConditionError,
            "predict 1",
        ),
        (lambda: minimise_finite([[0, 1]], [0.5], sizes=[0], rule=EPRM()), BagDataError, "sizes"),
        (
            lambda: minimise_finite([np.sign], [0.5], sizes=[2], rule=EPRM()),
            ConditionError,
            "`X`",
        ),
        (
            lambda: minimise_finite([[0, 1]], [0.5], sizes=[2], rule=CountDebiasedSquare()),
            ConditionError,
            "at least 2 bags",
        ),
        (
            lambda: minimise_finite([[0, 1]], [0.5], sizes=[2], rule=EasyLLP("split")),
            ConditionError,
            "at least 2 bags",
        ),
        (lambda: EasyLLP(prior=1.5), ConditionError, "prior"),
        (lambda: EasyLLP(prior="guess"), ConditionError, "prior"),
        (lambda: CountDebiasedSquare("never"), ConditionError, "debias"),
        (
            lambda: minimise_thresholds([[0], [1]], [0.5], sizes=[2], rule=EPRM()),
            ConditionError,
            "one axis",
        ),
        (
            lambda: minimise_thresholds([0, np.nan], [0.5], sizes=[2], rule=EPRM()),
            ConditionError,
            "finite",
        ),
        (
            lambda: minimise_intervals([0, 1, 2], [0.5], sizes=[2], rule=EPRM()),
            ConditionError,
            "fit",
        ),
        (
            lambda: minimise_stumps(np.empty((2, 0)), [0.5], sizes=[2], rule=EPRM()),
            ConditionError,
            "empty",
        ),
        (
            lambda: minimise_finite([[0, 1]], [0.5], sizes=[2], rule=EPRM(), combine_to=11),
            BagDataError,
            "combine_to",
        ),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
