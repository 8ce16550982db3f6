"""Shapes, localization and lower bounds: conditions, limits, and independent references."""

import math
import warnings

import numpy as np
import pytest
from scipy.integrate import quad

from unbag.errors import ConditionError
from unbag_paper.errors import ConditionWarning
from unbag_paper.theory import (
    CoordinateProblem,
    bag_class_vc_bound,
    coordinate_information,
    coordinate_information_bound,
    coordinate_shape,
    critical_radius,
    critical_radius_vc,
    easy_optimistic_bound,
    easy_slow_bound,
    easy_split_bound,
    eprm_sample_size,
    eprm_sample_size_sharp,
    fano_bound,
    fano_sample_size,
    local_rademacher_bound,
    localized_bound,
    log_covering_number,
    marginal_bias,
    proportion_square_bound,
    refined_dudley,
    sub_root_vc,
    trivial_agnostic_bound,
    trivial_realizable_bound,
)
from unbag_paper.theory.excess_bounds import debiased_excess_bound


def test_bag_class_of_thresholds_is_never_shattered_beyond_the_bound():
    """Count the labelings of random bags by thresholds: fewer than 2^m once m passes the bound."""
    rng = np.random.default_rng(0)
    bag_size = 6
    limit = bag_class_vc_bound(1, bag_size)
    for _ in range(50):
        x = rng.random((limit + 1, bag_size))
        targets = rng.integers(0, bag_size + 1, size=limit + 1)
        cuts = np.concatenate([x.ravel(), [2.0]])
        missed = (x[None] >= cuts[:, None, None]).sum(axis=2) != targets
        assert len(np.unique(missed, axis=0)) < 2 ** (limit + 1)


def test_bag_class_bound_grows_like_log_of_the_bag_size():
    sizes = [10, 100, 1000, 10_000]
    limits = np.array([bag_class_vc_bound(5, size) for size in sizes])
    steps = np.diff(limits)
    assert steps.max() - steps.min() <= 3  # equal steps of log k


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bag_size": 10}, "k >= 11"),
        ({"error": 0.05}, r"1/\(4k\)"),
        ({"symmetric": False}, "symmetric"),
    ],
)
def test_eprm_theorem_names_the_condition_that_fails(options, words):
    arguments = {"error": 0.01, "bag_size": 11, "vc_dimension": 2} | options
    with pytest.warns(ConditionWarning, match=words):
        eprm_sample_size(arguments.pop("error"), arguments.pop("bag_size"), **arguments)


def test_eprm_theorem_is_silent_inside_its_conditions_and_sharp_never_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paper = eprm_sample_size(0.005, 20, vc_dimension=2)
        sharp = eprm_sample_size_sharp(0.005, 20, vc_dimension=2)
        eprm_sample_size_sharp(0.2, 2, vc_dimension=2)
    assert sharp < paper / 10  # a factor of about k


def test_excess_bounds_have_the_stated_rates():
    few, many = 10**5, 10**7
    for bound in (debiased_excess_bound, easy_optimistic_bound, easy_split_bound):
        fast = bound(many, 5, vc_dimension=2) / bound(few, 5, vc_dimension=2)
        slow = bound(many, 5, vc_dimension=2, best_error=0.2) / bound(
            few, 5, vc_dimension=2, best_error=0.2
        )
        assert 0.01 < fast < 0.02  # 1/n up to a logarithm
        assert 0.05 < slow < 0.14  # 1/sqrt(n) up to a logarithm
    ratio = easy_slow_bound(many, 5, vc_dimension=2) / easy_slow_bound(few, 5, vc_dimension=2)
    assert 0.1 < ratio < 0.13


def test_proportion_square_keeps_its_bias():
    bias = marginal_bias(1 / 3, 2 / 3, bag_size=7)
    bound = proportion_square_bound(10**9, 7, vc_dimension=1, best_error=1 / 3, bias=bias)
    assert bound == pytest.approx(1.0, abs=0.01)
    clean = proportion_square_bound(10**9, 7, vc_dimension=1, best_error=1 / 3, bias=0.0)
    assert clean == pytest.approx(1 / 3, abs=0.01)


def test_critical_radius_is_a_fixed_point_both_ways():
    options = {"vc_dimension": 3, "lipschitz": 10.0, "constant": 2.0}
    closed = critical_radius_vc(1000, **options)
    assert sub_root_vc(closed, 1000, **options) == pytest.approx(closed)
    solved = critical_radius(lambda r: sub_root_vc(r, 1000, **options), largest=100.0)
    assert solved == pytest.approx(closed)
    for _ in range(2):
        larger = closed * 1.01
        assert sub_root_vc(larger, 1000, **options) < larger


def test_critical_radius_falls_like_d_log_n_over_n():
    radii = [critical_radius_vc(n, vc_dimension=3, lipschitz=10.0) for n in (10**4, 10**6)]
    expected = [3 * math.log(10.0 * n) / n for n in (10**4, 10**6)]
    ratio = [radius / shape for radius, shape in zip(radii, expected, strict=True)]
    assert max(ratio) / min(ratio) < 1.2


def test_dudley_at_a_fixed_start_is_the_integral():
    def cover(scale):
        return 1.0 / scale

    found = refined_dudley(cover, 100, radius=0.5)
    starts = np.geomspace(1e-6, 0.5, 2000)
    values = [4 * s + 12 * quad(lambda e: math.sqrt(cover(e) / 100), s, 0.5)[0] for s in starts]
    assert found == pytest.approx(min(values), rel=1e-3)


def test_local_rademacher_grows_slower_than_its_radius():
    values = [
        local_rademacher_bound(r, 10**6, vc_dimension=2, lipschitz=1.0) for r in (0.001, 0.01)
    ]
    assert values[0] < values[1] < values[0] * math.sqrt(10) * 1.01
    assert log_covering_number(2.0, 3) == 0.0


def test_localized_bound_is_fast_at_expectation_zero():
    def gap(n, mean, offset=0.0):
        radius = critical_radius_vc(n, vc_dimension=2, lipschitz=5.0)
        return localized_bound(
            mean, n, radius=radius, largest_loss=5.0, variance_offset=offset, variance_slope=5.0
        )

    assert gap(10**6, 0.0) / gap(10**4, 0.0) < 0.02
    assert 0.08 < gap(10**12, 0.3) / gap(10**10, 0.3) < 0.12
    assert gap(10**6, 0.0, offset=0.5) > gap(10**6, 0.0)


def information_by_sampling(bag_size, margin, dimension, n_bags, seed):
    """Divergence of coordinate 0's law of the count from the average law, given sampled bags."""
    rng = np.random.default_rng(seed)
    ones = rng.binomial(bag_size, 0.5, size=(n_bags, 2**dimension))
    channel = np.array(
        [
            np.convolve(
                [
                    math.comb(z, i) * (0.5 + margin) ** i * (0.5 - margin) ** (z - i)
                    for i in range(z + 1)
                ],
                [
                    math.comb(bag_size - z, i)
                    * (0.5 - margin) ** i
                    * (0.5 + margin) ** (bag_size - z - i)
                    for i in range(bag_size - z + 1)
                ],
            )
            for z in range(bag_size + 1)
        ]
    )
    laws = channel[ones]
    first, average = laws[:, 0], laws.mean(axis=1)
    ratio = np.where(first > 0, first, 1.0) / np.where(first > 0, average, 1.0)
    return float(np.mean(np.sum(first * np.log(ratio), axis=1)))


@pytest.mark.parametrize(("bag_size", "margin"), [(3, 0.5), (8, 0.5), (8, 0.1), (20, 0.2)])
def test_information_bounds_the_divergence_and_is_its_limit(bag_size, margin):
    exact = coordinate_information(bag_size, margin)
    few = information_by_sampling(bag_size, margin, 3, 4000, seed=0)
    many = information_by_sampling(bag_size, margin, 9, 2000, seed=1)
    assert few < exact
    assert many == pytest.approx(exact, rel=0.06)


def test_information_is_flat_in_the_bag_size_where_the_papers_bound_grows():
    flat = [coordinate_information(size, 1 / 16) for size in (1, 10, 100)]
    rising = [coordinate_information_bound(size, 1 / 16) for size in (1, 10, 100)]
    assert max(flat) / min(flat) < 1.01
    assert flat[-1] == pytest.approx(-math.log(1 - 4 / 256) / 2, rel=1e-3)
    assert rising[-1] / rising[0] > 8
    assert all(paper > exact for paper, exact in zip(rising, flat, strict=True))


@pytest.mark.parametrize("bag_size", [1050, 1200])
def test_information_of_bags_whose_rarest_counts_underflow(bag_size):
    entropy = math.log(math.pi * math.e * bag_size / 2) / 2
    assert coordinate_information(bag_size, 0.5) == pytest.approx(entropy, rel=1e-6)
    flat = -math.log(1 - 4 * 0.1**2) / 2
    assert coordinate_information(bag_size, 0.1) == pytest.approx(flat, rel=1e-4)
    assert fano_bound(100, bag_size, dimension=20) == 0.0


def test_fano_vanishes_with_enough_bags_and_is_margin_half_without_any():
    assert fano_bound(0, 10, dimension=200) == pytest.approx(0.25, abs=0.002)
    assert fano_bound(10**6, 10, dimension=20) == 0.0
    n = fano_sample_size(10, dimension=20)
    assert fano_bound(math.floor(n), 10, dimension=20) >= 0.125


def test_coordinate_problem_has_the_stated_separation():
    problem = CoordinateProblem(3, margin=0.2)
    assert problem.excess_errors[1:] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coordinate_shape(2, dimension=1), "d >= 3"),
        (lambda: coordinate_shape(100, dimension=5), "2\\^d"),
        (lambda: coordinate_shape(4, dimension=10, margin=0.2), "1/16"),
        (lambda: trivial_realizable_bound(0.2, 3, vc_dimension=3), "1/8"),
        (lambda: trivial_realizable_bound(0.1, 3, vc_dimension=3, confidence=0.9), "0.01"),
    ],
)
def test_conditions_of_lower_bounds_are_named(call, words):
    with pytest.warns(ConditionWarning, match=words):
        call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coordinate_shape(1, dimension=5), "at least 2"),
        (lambda: coordinate_information(5, 0.7), "margin"),
        (lambda: fano_sample_size(10, dimension=20, margin=0.0), "`margin` must be above 0"),
        (lambda: sub_root_vc(1e9, 100, vc_dimension=2, lipschitz=1.0), "sub-root"),
        (lambda: sub_root_vc(0.1, 2, vc_dimension=2, lipschitz=1.0), "n > d"),
        (lambda: critical_radius(lambda r: r + 1, largest=1.0), "raise it"),
        (lambda: critical_radius(lambda r: 0.0, largest=1.0), "no positive radius"),
        (lambda: easy_split_bound(1, 3, vc_dimension=1), "at least 2"),
        (lambda: eprm_sample_size(0.7, 11, vc_dimension=1), "1/2"),
        (lambda: trivial_agnostic_bound(0.1, 0, vc_dimension=1), "bag_size"),
        (lambda: proportion_square_bound(9, 3, vc_dimension=1, best_error=0, bias=-1), "negative"),
    ],
)
def test_nonsense_is_an_error(call, words):
    with pytest.raises(ConditionError, match=words):
        call()
