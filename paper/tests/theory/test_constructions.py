"""The constructions: exact risks, and counts that follow the law of the instances."""

from itertools import product

import numpy as np
import pytest

from unbag.errors import ConditionError
from unbag_paper.theory import (
    CoordinateProblem,
    FiniteProblem,
    crossed_problem,
    easy_deviation_realizable,
    one_point_problem,
    pairwise_relative_error,
    pure_bag_probability,
    separated_problem,
    shattered_problem,
)


def test_the_papers_numbers():
    crossed = crossed_problem()
    assert crossed.errors == pytest.approx([2 / 3, 1 / 3])
    assert crossed.mean_predictions == pytest.approx([2 / 3, 1 / 3])
    assert crossed.prior == pytest.approx(2 / 3)
    assert one_point_problem(0.1).excess_errors == pytest.approx([0.2, 0.0])
    assert separated_problem().errors.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "problem", [crossed_problem(), shattered_problem(2, rare_mass=0.6, margin=0.2)]
)
def test_counts_follow_the_law_of_the_instances(problem):
    """Mean and variance of predicted counts, positives, and their covariance, both samplers."""
    rng, bag_size, n_bags = np.random.default_rng(0), 5, 40_000
    drawn = problem.sample(n_bags, bag_size, generator=rng)
    slow = problem.hypotheses[:, drawn.points].sum(axis=2)
    fast = problem.sample_counts(1, n_bags, bag_size=bag_size, generator=rng)
    for number in range(len(problem.hypotheses)):
        one = np.cov(slow[number], drawn.labels.sum(axis=1))
        two = np.cov(fast.predicted[0, number], fast.positives[0, 0])
        assert one == pytest.approx(two, abs=0.06)
    assert drawn.proportions.mean() == pytest.approx(problem.prior, abs=0.01)


@pytest.mark.parametrize("margin", [0.5, 0.1])
def test_coordinate_counts_follow_the_law_of_the_bits(margin):
    problem, rng = CoordinateProblem(3, margin=margin), np.random.default_rng(0)
    bits, labels = problem.sample(20_000, 4, generator=rng)
    fast = problem.sample_counts(1, 20_000, bag_size=4, generator=rng)
    slow = np.asarray(bits).sum(axis=1)
    for number in (0, 1):
        one = np.cov(slow[:, number], labels.sum(axis=1))
        two = np.cov(fast.predicted[0, number], fast.positives[0, 0])
        assert one == pytest.approx(two, abs=0.05)


def test_one_pure_bag_in_two_to_the_k():
    assert pure_bag_probability(0.0, 12) == 2.0**-11
    assert pure_bag_probability(0.5, 12) == 1.0


def test_easy_deviation_by_enumeration():
    labels = (np.arange(16)[:, None] >> np.arange(4)) & 1
    share = labels.mean(axis=1)
    weights = np.prod(np.where(labels, 0.3, 0.7), axis=1)
    pull = 4 * (share - 0.3) + 0.3
    loss = pull * (1 - share) + (1 - pull) * share
    assert weights @ loss == pytest.approx(0)
    exact = easy_deviation_realizable(9, bag_size=4, prior=0.3)
    assert exact == pytest.approx(np.sqrt(weights @ loss**2 / 9))


def test_relative_error_between_its_two_regimes():
    assert pairwise_relative_error(0.1, 1000, bag_size=10_000) == pytest.approx(
        (2 / 1000) ** 0.5, rel=0.01
    )
    sparse = pairwise_relative_error(0.001, 1000, bag_size=2)
    assert sparse == pytest.approx((1 / (1000 * 2 * 0.001)) ** 0.5, rel=0.01)


@pytest.mark.parametrize("error", [0.2, 0.9, 1.0])
@pytest.mark.parametrize(("n_bags", "bag_size"), [(5, 1), (3, 2), (2, 3)])
def test_relative_error_by_enumeration(error, n_bags, bag_size):
    gaps = np.array(list(product([-1, 0, 1], repeat=n_bags * bag_size)))
    weights = np.prod(np.where(gaps == 0, 1 - error, error / 2), axis=1)
    residuals = gaps.reshape(-1, n_bags, bag_size).mean(axis=2)
    squares = (residuals**2).sum(axis=1)
    pairs = (residuals.sum(axis=1) ** 2 - squares) / (n_bags - 1)
    estimate = (bag_size * squares - (bag_size - 1) * pairs) / n_bags
    assert weights @ estimate == pytest.approx(error)
    exact = np.sqrt(weights @ (estimate - error) ** 2) / error
    found = pairwise_relative_error(error, n_bags, bag_size=bag_size)
    assert found == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: FiniteProblem("x", np.ones(1), np.ones(1), np.empty((0, 1))), "empty"),
        (lambda: FiniteProblem("x", np.ones(1), np.ones(1), np.array([[2]])), "0 or 1"),
        (lambda: FiniteProblem("x", np.ones(2), np.ones(2), np.array([[1, 0]])), "sum to one"),
        (lambda: FiniteProblem("x", np.ones(1), np.ones(2), np.array([[1]])), "positive_rate"),
        (lambda: FiniteProblem("x", np.ones(1), np.ones(1), np.array([[1, 0]])), "column"),
        (lambda: one_point_problem(0.6), "margin"),
        (lambda: shattered_problem(0, rare_mass=0.1), "dimension"),
        (lambda: CoordinateProblem(3, margin=0.0), "margin"),
    ],
)
def test_bad_problems_are_named(call, words):
    with pytest.raises(ConditionError, match=words):
        call()
