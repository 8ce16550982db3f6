"""Certificates: they solve what they state, and simulations respect them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbag.errors import ConditionError
from unbag.planning import (
    Guarantee,
    debiased_excess_certificate,
    debiased_risk_certificate,
    realizable_error_certificate,
    realizable_vc_error_certificate,
)
from unbag.planning.certificates import pairwise_kernel_deviation, pairwise_kernel_range
from unbag.planning.realizable import log_growth_function, mismatch_bound
from unbag_paper.exact import EPRM, CountDebiasedSquare, bag_loss
from unbag_paper.theory import (
    realizable_sample_size,
    realizable_vc_sample_size,
    shattered_problem,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(0.001, 0.4), st.integers(1, 50), st.integers(1, 10**6), st.floats(0.5, 0.999))
def test_sample_size_is_the_smallest_that_works(error, bag_size, size, confidence):
    n = realizable_sample_size(error, bag_size, n_hypotheses=size, confidence=confidence)
    survive = 1 - float(mismatch_bound(error, bag_size))
    delta = 1 - confidence
    assert size * survive**n <= delta * (1 + 1e-9)
    assert n == 1 or size * survive ** (n - 1) > delta * (1 - 1e-9)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(1, 5000), st.integers(1, 50), st.integers(1, 1000))
def test_error_certificate_inverts_the_sample_size(n_bags, bag_size, size):
    error = realizable_error_certificate(n_bags, bag_size, n_hypotheses=size)
    if error < 0.49:
        assert realizable_sample_size(error * 1.0001, bag_size, n_hypotheses=size) <= n_bags


@pytest.mark.parametrize("n_bags", [1, 2, 3, 4])
def test_too_few_bags_certify_nothing(n_bags):
    """Of a truth and its opposite, bags of two with one positive each exclude neither."""
    matched = 0.5**n_bags
    assert matched > 0.05  # the opposite, wrong on all instances, is consistent too often
    assert realizable_error_certificate(n_bags, 2, n_hypotheses=2) == 1
    assert realizable_vc_error_certificate(n_bags, 2, vc_dimension=1) == 1


def test_vc_sample_size_reaches_the_error_and_one_less_does_not():
    n = realizable_vc_sample_size(0.01, 20, vc_dimension=3)
    assert realizable_vc_error_certificate(n, 20, vc_dimension=3) <= 0.01
    assert realizable_vc_error_certificate(n - 1, 20, vc_dimension=3) > 0.01


def test_growth_function_is_sauers_sum():
    for points in range(1, 9):
        for dimension in range(1, 5):
            exact = sum(math.comb(points, i) for i in range(min(points, dimension) + 1))
            assert math.exp(log_growth_function(points, dimension)) == pytest.approx(exact)


@pytest.mark.parametrize("bag_size", [1, 2, 7])
def test_kernel_range_is_exact(bag_size):
    gaps = np.linspace(-1, 1, 201)
    first, second = np.meshgrid(gaps, gaps)
    kernel = bag_size / 2 * (first**2 + second**2) - (bag_size - 1) * first * second
    assert kernel.max() == pytest.approx(pairwise_kernel_range(bag_size))
    assert kernel.min() == pytest.approx(0)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 30))
def test_kernel_deviation_is_never_above_its_bound(error, share, bag_size):
    """The kernel's exact law, from the law of one bag's signed sum of errors."""
    signs = np.array([error * share, 1 - error, error * (1 - share)])
    law = np.ones(1)
    for _ in range(bag_size):
        law = np.convolve(law, signs)
    gaps = np.arange(-bag_size, bag_size + 1) / bag_size
    first, second = np.meshgrid(gaps, gaps)
    kernel = bag_size / 2 * (first**2 + second**2) - (bag_size - 1) * first * second
    mean = law @ kernel @ law
    variance = max(0.0, law @ kernel**2 @ law - mean**2)
    assert mean == pytest.approx(error, abs=1e-9)
    assert math.sqrt(variance) <= pairwise_kernel_deviation(error, bag_size) + 1e-6


def test_the_deviation_check_rejects_a_bound_without_its_main_term():
    """Bags of one: half of the variance of the labels is left."""
    assert math.sqrt(0.5 * 0.1 * 0.9) > 0.1 * math.sqrt(2)


@pytest.mark.parametrize("best_error", [0.0, 0.05, 0.4])
def test_bernstein_solves_its_inequality(best_error):
    n, k, size = 50_000, 10, 100
    excess = debiased_excess_certificate(n, k, n_hypotheses=size, best_error=best_error)
    rate = math.log((size + 1) / 0.05) / (n // 2)
    risk, root = best_error + excess, math.sqrt(2 * rate)
    left = risk - pairwise_kernel_deviation(risk, k) * root - risk * rate / 3
    right = best_error + pairwise_kernel_deviation(best_error, k) * root + (2 * k - 1) * rate / 3
    assert left == pytest.approx(right)


def test_the_slow_term_does_not_grow_with_the_bag_size():
    n, options = 10**9, {"n_hypotheses": 100, "best_error": 0.1}
    small, large = (debiased_excess_certificate(n, k, **options) for k in (10, 100))
    assert large < small


def test_the_smaller_of_two_inequalities_is_taken():
    """Hoeffding's for many instances of few bags, whose kernel has a large variance."""
    n_bags, size, rate = 40_000, 1, math.log(11 / 0.05) / 20_000
    found = debiased_excess_certificate(n_bags, size, n_hypotheses=10, best_error=0.5)
    assert found == pytest.approx(math.sqrt(2 * rate))
    assert debiased_excess_certificate(n_bags, size, n_hypotheses=10) < found / 10


def test_an_estimate_of_zero_has_a_certificate_above_zero():
    """Zero solves the inequality too, and is not the largest error that does."""
    at_zero = debiased_risk_certificate(0.0, 200, bag_size=10)
    assert at_zero == pytest.approx(debiased_risk_certificate(1e-9, 200, bag_size=10), rel=1e-6)
    assert at_zero == pytest.approx(0.019547, abs=1e-6)


@pytest.mark.parametrize("error", [0.0002, 0.001, 0.01])
def test_certificates_of_rare_errors_hold(error):
    """At 0.1 % every seventh data set shows no error, and used to be certified to have none."""
    rng, n_draws, n_bags, size = np.random.default_rng(0), 4000, 200, 10
    residuals = (rng.random((n_draws, n_bags)) < 0.5) * 2 - 1
    residuals = residuals * rng.binomial(size, error, size=(n_draws, n_bags)) / size
    values = (residuals**2).mean(axis=1) + (size - 1) * residuals.var(axis=1, ddof=1)
    limits = np.array([debiased_risk_certificate(v, n_bags, bag_size=size) for v in values])
    assert (values == 0).any() == (error < 0.01)
    assert (limits < error).mean() <= 0.05


def test_risk_certificate_covers_the_truth():
    """Failures of the upper limit over 2000 samples: none expected, the limit is loose."""
    rng = np.random.default_rng(0)
    error, n_bags, size = 0.05, 400, 10
    cells = rng.multinomial(size, [error / 2, error / 2, 1 - error], size=(2000, n_bags))
    values = bag_loss(
        CountDebiasedSquare(), cells[..., 0], sizes=np.full(n_bags, size), positives=cells[..., 1]
    )
    limits = [debiased_risk_certificate(v, n_bags, bag_size=size) for v in values]
    assert np.mean(np.array(limits) < error) <= 0.05


@pytest.mark.parametrize("bag_size", [1, 2, 12])
def test_realizable_certificate_covers_the_worst_consistent_hypothesis(bag_size):
    n_bags, confidence, rng = 60, 0.8, np.random.default_rng(1)
    bound = realizable_error_certificate(n_bags, bag_size, n_hypotheses=8, confidence=confidence)
    problem = shattered_problem(3, rare_mass=min(1.0, 3.03 * bound))
    counts = problem.sample_counts(2000, n_bags, bag_size=bag_size, generator=rng)
    missed = bag_loss(
        EPRM(), counts.predicted, sizes=np.full(n_bags, bag_size), positives=counts.positives
    )
    failures = ((missed == 0) & (problem.errors > bound)).any(axis=1).mean()
    assert failures <= 1 - confidence + 3 * math.sqrt(0.16 / 2000)
    assert failures > 0  # the problem is hard enough to see the certificate at work


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: realizable_sample_size(0.6, 5, n_hypotheses=3), "1/2"),
        (lambda: realizable_sample_size(0.1, 0, n_hypotheses=3), "bag_size"),
        (lambda: realizable_sample_size(0.1, 5, n_hypotheses=0), "n_hypotheses"),
        (lambda: realizable_sample_size(0.1, 5, n_hypotheses=3, confidence=1.0), "confidence"),
        (lambda: debiased_excess_certificate(1, 5, n_hypotheses=3), "n_bags"),
        (lambda: realizable_error_certificate(math.nan, 5, n_hypotheses=3), "n_bags"),
        (lambda: realizable_error_certificate(math.inf, 5, n_hypotheses=3), "n_bags"),
        (lambda: realizable_vc_error_certificate(100, 5, vc_dimension=-3), "vc_dimension"),
        (lambda: Guarantee(vc_dimension=3)(100, 0), "bag_size"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ConditionError, match=words):
        call()
