"""One contract over the registry, and broken rules that each of its checks must reject."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import laws
from tests.support.rule_references import REFERENCES

from unbag import BagBatch
from unbag.rules import RULES, DebiasedSquare, ProportionSquare, Rule, get_rule

EVERY_RULE = [variant for rule in RULES.values() for variant in rule.variants()]
LAYOUTS = [[3, 3, 3, 3], [1, 4, 2, 5]]
every_rule = pytest.mark.parametrize("rule", EVERY_RULE, ids=str)
TASKS = [(rule, task) for rule in EVERY_RULE for task in rule.tasks]
every_rule_and_task = pytest.mark.parametrize(("rule", "task"), TASKS, ids=str)


@pytest.mark.parametrize("sizes", LAYOUTS, ids=["equal", "unequal"])
@pytest.mark.parametrize("rule", [r for r in EVERY_RULE if str(r) in REFERENCES], ids=str)
def test_agrees_with_the_reference(rule, sizes, generator):
    logits, _, batch = laws.random_problem(generator, sizes)
    batch = BagBatch(batch.proportions, batch.sizes, prior=laws.prior_for(rule, 0.4))
    scores = logits.sigmoid().numpy()
    wanted = REFERENCES[str(rule)](scores, batch.proportions.numpy(), sizes, 0.4)
    assert float(rule(logits, batch)) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("rule", [r for r in EVERY_RULE if r.unbiased], ids=str)
def test_unbiased_rules_are_unbiased_over_every_draw(rule):
    assert laws.exact_bias(rule) < 1e-12


@pytest.mark.parametrize("rule", [r for r in EVERY_RULE if r.unbiased_given_prior], ids=str)
def test_other_rules_need_the_prior_to_be_unbiased(rule):
    assert laws.exact_bias(rule, prior_known=True) < 1e-12


@every_rule
def test_half_precision_changes_logits_and_not_counts(rule):
    """Sums of bfloat16 made 500 of 501 predictions, and 0.75 of a share of missed bags of 1."""
    logits, proportions = torch.full((4 * 501,), 3.0), torch.full((4,), 500 / 501)
    single = rule(logits, BagBatch(proportions, 501))
    half = rule(logits.bfloat16(), BagBatch(proportions, 501))
    assert half.dtype == torch.float32
    assert float(half) == pytest.approx(float(single), rel=1e-6, abs=1e-9)


@every_rule_and_task
def test_a_score_that_is_no_number_leaves_no_number(rule, task, generator):
    logits, _, batch = laws.random_problem(generator, [3, 3, 3, 3], task)
    logits[4] = torch.nan
    assert rule(logits, batch).isnan()


@pytest.mark.parametrize("rule", [r for r in EVERY_RULE if not r.unbiased], ids=str)
def test_other_rules_are_biased(rule):
    assert laws.exact_bias(rule) > 1e-3


@pytest.mark.parametrize("rule", [r for r in EVERY_RULE if r.unbiased], ids=str)
def test_unbiased_rules_are_unbiased(rule, generator):
    assert laws.bias_in_standard_errors(rule, generator) < 4  # false alarm once in 16,000 seeds


@every_rule
def test_order_does_not_matter(rule, generator):
    assert laws.change_under_reordering(rule, generator) < 1e-9


@every_rule
def test_bags_of_one_are_supervised_learning(rule, generator):
    assert laws.gap_to_supervised_loss(rule, generator) < 1e-9


@every_rule
def test_lower_bound_is_as_claimed(rule, generator):
    lowest = laws.lowest_loss(rule, generator)
    if rule.lower_bound is None:
        assert lowest < -0.01
    else:
        assert lowest >= rule.lower_bound - 1e-12


@every_rule
@pytest.mark.parametrize("sizes", LAYOUTS, ids=["equal", "unequal"])
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_gradient_is_as_claimed(rule, sizes, task, generator):
    logits, _, batch = laws.random_problem(generator, sizes, task)
    own = torch.autograd.gradcheck(
        lambda x: rule(x, batch), logits.requires_grad_(), raise_exception=False
    )
    assert own != rule.semi_gradient


@every_rule_and_task
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extreme_logits_and_proportions_stay_finite(rule, task, dtype):
    for proportion in (0.0, 0.5, 1.0):
        for sign in (1, -1):
            pattern = torch.tensor([1e4, -1e4, 1e4, 1e4, -1e4, 0.0, 3.0, -1e4], dtype=dtype)
            if task in ("binary", "amount"):
                logits, proportions = sign * pattern, torch.full((2,), proportion, dtype=dtype)
            else:
                logits = torch.stack([sign * pattern, -pattern, pattern.flip(0)], dim=-1)
                proportions = torch.tensor([proportion, 1 - proportion, 0.0], dtype=dtype)
                proportions = proportions.expand(2, 3)
            logits.requires_grad_()
            loss = rule(logits, BagBatch(proportions, 4, task=task))
            assert loss.dtype == dtype
            assert torch.isfinite(loss)
            (gradient,) = torch.autograd.grad(loss, logits)
            assert torch.isfinite(gradient).all()


@every_rule_and_task
def test_leading_axes_are_separate_problems(rule, task, generator):
    problems = [laws.random_problem(generator, [2, 3, 2, 1], task) for _ in range(6)]
    logits = torch.stack([p[0] for p in problems]).unflatten(0, (2, 3))
    proportions = torch.stack([p[2].proportions for p in problems]).unflatten(0, (2, 3))
    sizes = problems[0][2].sizes
    prior = torch.stack([p[2].prior for p in problems]).unflatten(0, (2, 3))
    together = rule(logits, BagBatch(proportions, sizes, prior=prior, task=task))
    alone = torch.stack([rule(lo, b) for lo, _, b in problems]).unflatten(0, (2, 3))
    torch.testing.assert_close(together, alone)


@every_rule
@settings(max_examples=25, deadline=None)
@given(n_bags=st.integers(2, 5), bag_size=st.integers(1, 6), problem_seed=st.integers(0, 2**32 - 1))
def test_equal_bags_are_a_case_of_unequal_ones(rule, n_bags, bag_size, problem_seed):
    generator = torch.Generator().manual_seed(problem_seed)
    logits, _, batch = laws.random_problem(generator, [bag_size] * n_bags)
    unequal = BagBatch(batch.proportions, torch.full((n_bags,), bag_size), prior=batch.prior)
    torch.testing.assert_close(rule(logits, unequal), rule(logits, batch))


@every_rule
def test_whole_proportions_are_floats(rule, generator):
    """Pure bags given as integers: prior and noise keep their fractions."""
    logits, _, _ = laws.random_problem(generator, [2, 2, 2, 2])
    pure, rest = torch.tensor([1, 0, 0, 1]), (2, torch.full((4,), 0.01), laws.prior_for(rule, 0.4))
    found = rule(logits.float(), BagBatch(pure, *rest))
    torch.testing.assert_close(found, rule(logits.float(), BagBatch(pure.float(), *rest)))


@every_rule
def test_two_classes_are_the_binary_task(rule, generator):
    logits, _, batch = laws.random_problem(generator, [3, 2, 4])
    two = BagBatch(
        torch.stack([1 - batch.proportions, batch.proportions], dim=-1),
        batch.sizes,
        prior=torch.tensor([0.6, 0.4]),
        task="multiclass",
    )
    outputs = torch.stack([torch.zeros_like(logits), logits], dim=-1)
    scale = 1 if rule.instance_loss == "log" else 2  # both coordinates of the one-hot label
    torch.testing.assert_close(rule(outputs, two), scale * rule(logits, batch))


@every_rule
def test_too_few_bags_are_refused(rule):
    if rule.min_bags > 1:
        with pytest.raises(ValueError, match="at least 2 bags"):
            rule(torch.zeros(3), BagBatch(torch.tensor([0.5]), 3))


@every_rule
def test_wrong_number_of_logits_is_refused(rule):
    with pytest.raises(ValueError, match="logits must have shape"):
        rule(torch.zeros(5), BagBatch(torch.tensor([0.5, 0.5]), 3))


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_when_to_use_it(name):
    assert 20 < len(RULES[name].use_when) < 200


def test_a_rule_is_found_by_name():
    assert get_rule("proportion_square") == ProportionSquare()
    assert get_rule(DebiasedSquare()) == DebiasedSquare()
    with pytest.raises(ValueError, match="rule must be one of"):
        get_rule("nonsense")


# --- every check above has to reject a rule that breaks its law ---


@dataclass(frozen=True)
class Broken(Rule):
    """`debiased_square` with one thing wrong."""

    name: ClassVar[str] = "broken"
    paper_name: ClassVar[str] = "none"
    instance_loss: ClassVar[str] = "square"
    fault: str = "biased"

    def loss(self, logits, batch):
        value = DebiasedSquare().loss(logits, batch)
        residuals = batch.residuals(logits)[..., 0]
        if self.fault == "biased":
            return value + residuals.square().mean(dim=-1)
        if self.fault == "first bag counts more":
            return value + 0.1 * residuals[..., 0].square()
        if self.fault == "first instance counts more":
            return value + 0.1 * logits[..., 0].square()
        return value - 0.2  # fault == "negative"


def test_the_exact_bias_check_rejects_a_biased_rule():
    assert laws.exact_bias(Broken("biased")) > 1e-3


def test_the_bias_check_rejects_a_biased_rule(generator):
    assert laws.bias_in_standard_errors(ProportionSquare(), generator) > 4
    assert laws.bias_in_standard_errors(Broken("biased"), generator) > 4


@pytest.mark.parametrize("fault", ["first bag counts more", "first instance counts more"])
def test_the_order_check_rejects_a_rule_that_looks_at_positions(fault, generator):
    assert laws.change_under_reordering(Broken(fault), generator) > 1e-6


def test_the_supervised_check_rejects_a_rule_with_an_offset(generator):
    assert laws.gap_to_supervised_loss(Broken("negative"), generator) > 0.1


def test_the_lower_bound_check_rejects_a_negative_rule(generator):
    assert laws.lowest_loss(Broken("negative"), generator) < -0.1


def test_the_reference_check_rejects_a_biased_rule(generator):
    logits, _, batch = laws.random_problem(generator, [3, 3, 3])
    reference = REFERENCES[str(DebiasedSquare())]
    wanted = reference(logits.sigmoid().numpy(), batch.proportions.numpy(), [3, 3, 3], 0.4)
    assert abs(float(Broken("biased")(logits, batch)) - wanted) > 1e-6


def test_gradcheck_rejects_a_detached_gradient(generator):
    logits, _, batch = laws.random_problem(generator, [3, 3, 3])

    def detached(x):
        return DebiasedSquare()(x, batch) + x.detach().square().sum()

    with pytest.raises(RuntimeError, match="Jacobian"):
        torch.autograd.gradcheck(detached, logits.requires_grad_())


def test_debiased_equals_mean_square_plus_variance(generator):
    logits, _, batch = laws.random_problem(generator, [5] * 6)
    r = batch.residuals(logits)[..., 0].numpy()
    wanted = np.mean(r**2) + 4 * np.var(r, ddof=1)
    assert float(DebiasedSquare()(logits, batch)) == pytest.approx(wanted)
