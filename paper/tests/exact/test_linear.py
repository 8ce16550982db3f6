"""Linear thresholds by mixed-integer programming against all separable labelings."""

import numpy as np
import pytest
from paper.tests.support.exact_reference import RULES, all_minimisers, every_labeling
from scipy.optimize import linprog

from unbag.errors import ConditionError
from unbag_paper.exact import EPRM, CountDebiasedSquare, CountProportionLog, minimise_linear

MARGIN = 1e-4


def separable(X, labels):
    """Whether the labeling has a linear threshold of the margin, by linear programming."""
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = (2 * X - low - high) / (high - low)
    sign = 2 * np.array(labels) - 1
    d = X.shape[1]
    result = linprog(
        np.zeros(d + 1),
        A_ub=-sign[:, None] * np.column_stack([scaled, np.ones(len(X))]),
        b_ub=np.full(len(X), -MARGIN),
        bounds=[(-1, 1)] * d + [(-d - 1, d + 1)],
    )
    return result.status == 0


def random_problem(seed, n_bags=3, bag_size=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_bags * bag_size, 2))
    return X, rng.integers(0, bag_size + 1, size=n_bags).tolist(), bag_size


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_linear_agrees_with_every_separable_labeling(name, seed):
    X, positives, size = random_problem(seed)
    member = [i // size for i in range(len(X))]
    labelings = [z for z in every_labeling(len(X)) if separable(X, z)]
    least, tied = all_minimisers(name, labelings, member, positives)
    shares = [p / size for p in positives]
    if least == np.inf:
        with pytest.raises(ConditionError, match="infinite"):
            minimise_linear(X, shares, sizes=[size] * len(shares), rule=RULES[name])
        return
    found = minimise_linear(
        X, shares, sizes=[size] * len(shares), rule=RULES[name], max_minimisers=100
    )
    assert found.optimal
    assert found.value == pytest.approx(least, abs=1e-7)
    assert found.gap == pytest.approx(0, abs=1e-6)
    assert {tuple(row) for row in found.predictions.tolist()} == tied


def test_returned_weights_reproduce_the_predictions():
    X, positives, size = random_problem(9, n_bags=4, bag_size=3)
    found = minimise_linear(
        X, np.array(positives) / size, sizes=[size] * 4, rule=CountDebiasedSquare()
    )
    scores = X @ found.weights[0] + found.intercepts[0]
    assert ((scores >= 0) == found.predictions[0]).all()


@pytest.mark.parametrize("shift", [0.0, 1e4, 1e6, -1e9])
def test_features_need_not_be_centred(shift):
    X = np.arange(8.0)[:, None] + shift
    found = minimise_linear(X, [0, 0, 1, 1], sizes=[2] * 4, rule=CountDebiasedSquare())
    assert found.optimal
    assert found.value == 0.0
    scores = X @ found.weights[0] + found.intercepts[0]
    assert ((scores >= 0) == found.predictions[0]).all()


def test_a_constant_feature_has_no_weight():
    X = np.column_stack([np.arange(8.0), np.zeros(8), np.full(8, 3.0)])
    found = minimise_linear(X, [0, 0, 1, 1], sizes=[2] * 4, rule=EPRM())
    assert found.value == 0.0
    assert found.weights[0, 0] > 0
    assert found.weights[0, 1:].tolist() == [0.0, 0.0]


def test_a_limit_leaves_a_gap_that_contains_the_optimum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    labels = rng.integers(2, size=60)
    shares = labels.reshape(10, 6).mean(axis=1)
    found = minimise_linear(X, shares, sizes=[6] * 10, rule=CountDebiasedSquare(), node_limit=1)
    assert found.bound <= found.value
    assert found.optimal == (found.gap < 1e-6)


def test_no_time_at_all_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    with pytest.raises(ConditionError, match="time_limit"):
        minimise_linear(X, [0.5] * 10, sizes=[6] * 10, rule=EPRM(), time_limit=0.0)


def test_infinite_log_loss_is_said():
    # Two instances at one place cannot be told apart, and a proportion of 1/2 needs just that.
    with pytest.raises(ConditionError, match="infinite"):
        minimise_linear([[1.0], [1.0]], [0.5], sizes=[2], rule=CountProportionLog())
