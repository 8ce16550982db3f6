"""What is special about EasyLLP: an offset in the logarithm, which bounds its loss."""

from functools import partial

import pytest
import torch
from tests.support import laws
from tests.support import rule_references as references

from unbag import BagBatch
from unbag.rules import EasyLog

OFFSET = 0.01
BAGS = BagBatch(torch.tensor([0.0, 1.0]), 3, prior=torch.tensor(0.5))


def test_an_offset_is_added_to_each_probability(generator):
    sizes = [3, 1, 2]
    logits, _, batch = laws.random_problem(generator, sizes)
    batch = BagBatch(batch.proportions, batch.sizes, prior=laws.prior_for(EasyLog(), 0.4))
    wanted = references.easy(
        logits.sigmoid().numpy(),
        batch.proportions.numpy(),
        sizes,
        0.4,
        partial(references.log_loss, offset=OFFSET),
    )
    assert float(EasyLog(offset=OFFSET)(logits, batch)) == pytest.approx(wanted, rel=1e-9)


def test_with_an_offset_the_log_loss_is_estimated_with_a_bias():
    assert not EasyLog(offset=OFFSET).unbiased
    assert laws.exact_bias(EasyLog(offset=OFFSET)) > 1e-3


@pytest.mark.parametrize(("offset", "is_bounded"), [(0.0, False), (1e-8, True)])
def test_an_offset_bounds_the_loss(offset, is_bounded):
    """Confident scores that have the labels right gain by their negative weights, or no more."""
    rule = EasyLog(offset=offset)
    sure, surer = (rule(scale * torch.tensor([-1.0, 1]).repeat_interleave(3), BAGS)
                   for scale in (100.0, 1000.0))  # fmt: skip
    assert (float(surer) == pytest.approx(float(sure))) == is_bounded


def test_an_offset_lets_confident_instances_be():
    logits = torch.tensor([-40.0] * 3 + [40.0] * 3, requires_grad=True)
    [gradient] = torch.autograd.grad(EasyLog(offset=1e-8)(logits, BAGS), logits)
    assert gradient.abs().max() < 1e-6
    [gradient] = torch.autograd.grad(EasyLog()(logits, BAGS), logits)
    assert gradient.abs().min() > 0.1


@pytest.mark.parametrize("offset", [-1e-8, 1.0])
def test_an_offset_out_of_range_is_refused(offset):
    with pytest.raises(ValueError, match="offset must be from 0 to below 1"):
        EasyLog(offset=offset)


def test_several_classes_have_the_offset_too(generator):
    logits = torch.randn(6, 3, generator=generator, dtype=torch.double)
    proportions = torch.tensor([[1.0, 0, 0], [0, 0.5, 0.5]], dtype=torch.double)
    prior = torch.tensor([0.2, 0.3, 0.5], dtype=torch.double)
    batch = BagBatch(proportions, 3, prior=prior, task="multiclass")
    weights = 3 * (proportions - prior) + prior
    losses = -(logits.softmax(dim=-1) + OFFSET).log().reshape(2, 3, 3).mean(dim=1)
    wanted = float((weights * losses).sum(dim=1).mean())
    assert float(EasyLog(offset=OFFSET)(logits, batch)) == pytest.approx(wanted)
