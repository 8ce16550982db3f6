"""The share of bags that hard predictions miss, by the laws of the library's rules."""

import pytest
import torch
from tests.support import laws
from tests.support.rule_references import REFERENCES

from unbag import BagBatch
from unbag_paper.exact import EprmRule

TASKS = ["binary", "multiclass", "multilabel"]


@pytest.mark.parametrize("sizes", [[3, 3, 3, 3], [1, 4, 2, 5]], ids=["equal", "unequal"])
def test_agrees_with_the_reference(sizes, generator):
    logits, _, batch = laws.random_problem(generator, sizes)
    data = logits.sigmoid().numpy(), batch.proportions.numpy(), sizes, 0.4
    assert float(EprmRule()(logits, batch)) == pytest.approx(REFERENCES["EprmRule()"](*data))


def test_it_obeys_the_laws_of_rules(generator):
    assert laws.change_under_reordering(EprmRule(), generator) < 1e-9
    assert laws.gap_to_supervised_loss(EprmRule(), generator) < 1e-9
    assert laws.lowest_loss(EprmRule(), generator) >= 0
    assert laws.exact_bias(EprmRule()) > 1e-3


@pytest.mark.parametrize("task", TASKS)
def test_a_score_that_is_no_number_leaves_no_number(task, generator):
    logits, _, batch = laws.random_problem(generator, [3, 3, 3, 3], task)
    logits[4] = torch.nan
    assert EprmRule()(logits, batch).isnan()


@pytest.mark.parametrize("task", TASKS)
def test_leading_axes_are_separate_problems(task, generator):
    problems = [laws.random_problem(generator, [2, 3, 2, 1], task) for _ in range(3)]
    proportions = torch.stack([batch.proportions for _, _, batch in problems])
    together = BagBatch(proportions, problems[0][2].sizes, task=task)
    found = EprmRule()(torch.stack([logits for logits, _, _ in problems]), together)
    alone = [EprmRule()(logits, batch) for logits, _, batch in problems]
    torch.testing.assert_close(found, torch.stack(alone))


def test_half_precision_changes_logits_and_not_counts():
    logits, proportions = torch.full((4 * 501,), 3.0), torch.full((4,), 500 / 501)
    assert EprmRule()(logits.bfloat16(), BagBatch(proportions, 501)) == 1
