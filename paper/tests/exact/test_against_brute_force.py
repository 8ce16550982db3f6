"""Every minimiser against plain loops over every labeling of the class."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper.tests.support.exact_problems import bag_problems
from paper.tests.support.exact_reference import (
    RULES,
    all_minimisers,
    interval_labelings,
    reference_value,
    threshold_labelings,
)

from unbag_paper.exact import (
    EPRM,
    combine_small_bags,
    counted_bags,
    minimise_finite,
    minimise_intervals,
    minimise_stumps,
    minimise_thresholds,
)

every_rule = pytest.mark.parametrize("name", RULES)
many = settings(max_examples=150, deadline=None, derandomize=True)


def shares(sizes, positives):
    return [p / k for p, k in zip(positives, sizes, strict=True)]


def same_value(found, wanted):
    return found == wanted or math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)


@every_rule
@many
@given(problem=bag_problems(), symmetric=st.booleans())
def test_thresholds_agree(name, problem, symmetric):
    member, sizes, positives, x = problem
    found = minimise_thresholds(
        x, shares(sizes, positives), bags=member, rule=RULES[name], symmetric=symmetric
    )
    labelings = threshold_labelings(x, symmetric)
    least, tied = all_minimisers(name, labelings, member, positives)
    assert same_value(found.value, least)
    assert {tuple(cut.predict(x).tolist()) for cut in found.cuts} == tied
    assert len(found) == len(tied)


@every_rule
@many
@given(problem=bag_problems(), symmetric=st.booleans())
def test_intervals_agree(name, problem, symmetric):
    member, sizes, positives, x = problem
    found = minimise_intervals(
        x, shares(sizes, positives), bags=member, rule=RULES[name], symmetric=symmetric
    )
    labelings = interval_labelings(x, symmetric)
    least, tied = all_minimisers(name, labelings, member, positives)
    assert same_value(found.value, least)
    assert {tuple(one.predict(x).tolist()) for one in found.intervals} == tied


@every_rule
@many
@given(problem=bag_problems(), other=st.randoms(use_true_random=False), symmetric=st.booleans())
def test_stumps_agree(name, problem, other, symmetric):
    member, sizes, positives, x = problem
    second = [other.randint(0, 3) for _ in x]
    X = np.column_stack([x, second])
    found = minimise_stumps(
        X, shares(sizes, positives), bags=member, rule=RULES[name], symmetric=symmetric
    )
    labelings = threshold_labelings(x, symmetric) + threshold_labelings(second, symmetric)
    least, tied = all_minimisers(name, labelings, member, positives)
    assert same_value(found.value, least)
    assert {tuple(cut.predict(X).tolist()) for cut in found.cuts} == tied


@every_rule
@many
@given(problem=bag_problems(), other=st.randoms(use_true_random=False), symmetric=st.booleans())
def test_finite_classes_agree(name, problem, other, symmetric):
    member, sizes, positives, _ = problem
    rows = [tuple(other.randint(0, 1) for _ in member) for _ in range(6)]
    rows += [tuple(1 - z for z in row) for row in rows] if symmetric else []
    found = minimise_finite(
        rows[:6], shares(sizes, positives), bags=member, rule=RULES[name], symmetric=symmetric
    )
    least, tied = all_minimisers(name, rows, member, positives)
    assert same_value(found.value, least)
    assert found.indices.tolist() == [i for i, row in enumerate(rows) if row in tied]
    assert found.best == found.indices[0]


@many
@given(problem=bag_problems(max_bags=6), least=st.integers(1, 6))
def test_combined_bags_keep_members_and_counts(problem, least):
    member, sizes, positives, _ = problem
    bags = counted_bags(shares(sizes, positives), bags=member)
    if sum(sizes) < least:
        with pytest.raises(ValueError, match="fewer than"):
            combine_small_bags(bags, least)
        return
    joined = combine_small_bags(bags, least)
    assert joined.sizes.min() >= least
    assert joined.sizes.sum() == sum(sizes)
    assert joined.positives.sum() == sum(positives)
    assert all(
        len({int(j) for j, b in zip(joined.member, member, strict=True) if b == bag}) == 1
        for bag in range(len(sizes))
    )


@many
@given(problem=bag_problems(max_bags=6))
def test_combining_inside_a_minimiser_is_combining_before(problem):
    member, sizes, positives, x = problem
    if sum(sizes) < 4:
        return
    joined = combine_small_bags(counted_bags(shares(sizes, positives), bags=member), 4)
    found = minimise_thresholds(x, shares(sizes, positives), bags=member, rule=EPRM(), combine_to=4)
    least, tied = all_minimisers(
        "eprm", threshold_labelings(x, False), joined.member.tolist(), joined.positives.tolist()
    )
    assert same_value(found.value, least)
    assert {tuple(cut.predict(x).tolist()) for cut in found.cuts} == tied


def test_the_comparison_rejects_a_wrong_minimiser():
    member, positives, x = [0, 0, 1, 1], [1, 2], [0, 1, 2, 3]
    least, tied = all_minimisers("square", threshold_labelings(x, False), member, positives)
    assert (0, 1, 1, 1) in tied
    assert (0, 0, 0, 1) not in tied
    assert reference_value("square", (0, 0, 0, 1), member, positives) > least
