"""Moments of a count against all labelings of a bag."""

from itertools import product
from math import comb

import numpy as np
import pytest
import torch

from unbag import BagBatch
from unbag.rules import FactorialMoments, ProportionSquare

LOGITS = torch.tensor([0.9, -1.2, 0.3, -0.2, 1.7], dtype=torch.double)


def labelings(scores):
    """Count and probability of every labeling."""
    for labels in product([0, 1], repeat=len(scores)):
        yield sum(labels), np.prod(np.where(np.array(labels) == 1, scores, 1 - scores))


def bag_of(count):
    return BagBatch(torch.tensor([count / 5], dtype=torch.double), 5)


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("count", [0, 2, 5])
def test_moments_are_means_over_all_labelings(order, count):
    law = list(labelings(LOGITS.sigmoid().numpy()))
    gaps = [
        (sum(mass * comb(of(n), r) for n, mass in law) - comb(of(count), r)) / comb(5, r)
        for r in range(1, order + 1)
        for of in (lambda n: n, lambda n: 5 - n)  # positives, negatives
    ]
    wanted = np.square(gaps).sum() / 2
    assert float(FactorialMoments(order)(LOGITS, bag_of(count))) == pytest.approx(wanted)


def test_order_one_is_proportion_matching(generator):
    logits = torch.randn(10, 3, generator=generator).double()
    shares = torch.rand(3, 3, generator=generator).double()
    batch = BagBatch(shares / shares.sum(1, keepdim=True), torch.tensor([1, 3, 6]), None, None)
    batch = BagBatch(batch.proportions, batch.sizes, task="multiclass")
    first, plain = (rule(logits, batch) for rule in (FactorialMoments(1), ProportionSquare()))
    torch.testing.assert_close(first, plain)
    assert abs(float(FactorialMoments(2)(logits, batch) - plain)) > 1e-3


def test_true_scores_are_a_stationary_point_in_expectation():
    gradient = torch.zeros(5).double()
    for count, mass in labelings(LOGITS.sigmoid().numpy()):
        logits = LOGITS.clone().requires_grad_()
        (own,) = torch.autograd.grad(FactorialMoments(3)(logits, bag_of(count)), logits)
        gradient += mass * own
    torch.testing.assert_close(gradient, torch.zeros(5).double(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("order", [0, 9, 1.5])
def test_the_order_is_a_whole_number(order):
    with pytest.raises(ValueError, match="order must be"):
        FactorialMoments(order)
