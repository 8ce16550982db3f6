"""A fused step is the rule's own step, whatever the values it was traced with."""

import pytest
import torch

from unbag.bags import BagBatch
from unbag.rules import RULES
from unbag_paper.compiled import rule_step as fused


@pytest.fixture(autouse=True)
def _traced_only(monkeypatch):
    """What the compiler makes of a traced function is the compiler's business, and takes long."""
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    fused._compiled.cache_clear()
    yield
    fused._compiled.cache_clear()


def batch_of(generator, sizes, n_bags=5):
    counts = torch.randint(0, 7, (1, n_bags), generator=generator)
    return BagBatch(counts / 6, sizes, None, torch.tensor([0.4]), "binary")


@pytest.mark.parametrize("rule", [v for r in RULES.values() for v in r.variants()], ids=repr)
def test_a_fused_step_is_the_step(rule, generator):
    state = torch.full((1, 1, 1), torch.nan)
    for _ in range(3):
        batch = batch_of(generator, 6)
        logits = torch.randn(1, 30, generator=generator, requires_grad=True)
        wanted, wanted_state = rule.step(logits, batch, state)
        found, found_state = fused.fused_step(rule, logits, batch, state)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(found_state, wanted_state, equal_nan=True)
        if wanted.requires_grad:
            gradients = [torch.autograd.grad(loss.sum(), logits)[0] for loss in (found, wanted)]
            torch.testing.assert_close(*gradients)
        state = wanted_state.detach()
    assert fused._compiled.cache_info().misses == 1


def test_unequal_bags_are_not_traced(generator):
    sizes = torch.tensor([6, 6, 6, 6, 12])
    logits = torch.randn(1, 36, generator=generator)
    rule = RULES["proportion_square"]()
    found, _ = fused.fused_step(rule, logits, batch_of(generator, sizes), torch.zeros(1, 1, 1))
    assert found.shape == (1,)
    assert fused._compiled.cache_info().misses == 0


def test_a_worker_s_part_of_a_batch_is_not_traced(generator):
    class Part(BagBatch):
        """Its averages are over the bags of all workers, which a plain batch does not know."""

    whole = batch_of(generator, 6)
    part = Part(whole.proportions, 6, None, whole.prior, "binary")
    logits = torch.randn(1, 30, generator=generator)
    fused.fused_step(RULES["proportion_square"](), logits, part, torch.zeros(1, 1, 1))
    assert fused._compiled.cache_info().misses == 0
