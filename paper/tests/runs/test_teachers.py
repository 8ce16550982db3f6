"""A taught trial learns from the probabilities of a net that was trained from the same bags."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from paper.tests.support.small_grid import small_data, small_grid, taught_rule

from unbag.errors import TrainingError
from unbag_paper.compiled import train
from unbag_paper.runs import grid as declared
from unbag_paper.runs.grid import load_grids
from unbag_paper.runs.monitors import logits_on
from unbag_paper.runs.rows import Store
from unbag_paper.runs.runner import Runner
from unbag_paper.runs.trial_spec import teachers_of

DATA = small_data()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "rows")


@pytest.fixture
def trainings(monkeypatch):
    """Every call of the engine: the model, the bags of each trial, and the results."""
    calls = []

    def spy(trials, bags, *, model, **options):
        results = train(trials, bags, model=model, **options)
        calls.append((model, bags, results))
        return results

    monkeypatch.setattr("unbag_paper.runs.trainer.train", spy)
    return calls


def taught_runner(store, **changes):
    options = {"rules": (taught_rule(),), **changes}
    return Runner([small_grid(**options)], store, DATA, protocol="paper")


@pytest.mark.parametrize("name", ["mnist", "cifar"])
def test_a_teacher_is_the_trial_of_another_cell(name):
    [grid] = load_grids(name)
    others = {(c.model, c.rule.label, c.bag_size): c for c in grid.cells()}
    taught = list(grid.restrict(models=["linear"], rules=["distilled"]).cells())
    assert [cell.bag_size for cell in taught] == [10, 100, 1000]
    for cell in taught:
        teacher = others["cnn_small", "pairwise", cell.bag_size]
        assert cell.trial(0.01, 3, "0f").taught_by == teacher.trial(0.001, 3, "0f")
        assert cell.spec.bags_per_batch == 1000
        assert others["linear", "PM.Sq", cell.bag_size].spec.taught_by is None


def test_a_part_without_the_teacher_has_no_taught_rule_unless_it_is_named():
    [grid] = load_grids("mnist")

    def labels(**part):
        return [rule.label for rule in grid.restrict(**part).rules]

    assert "distilled" not in labels(models=["linear", "mlp100"])
    assert "distilled" in labels(models=["linear", "cnn_small"])
    assert labels(models=["linear"], rules=["distilled"]) == ["distilled"]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('rule = "pairwise"', 'rule = "pairs"', "teacher: rule must be among EZ.Log, .*'pairs'"),
        ('rule = "pairwise"', 'rule = "ridge"', "teacher: rule must be among"),
        ('rule = "pairwise"', 'rule = "distilled"', "teacher: rule must be among"),
        ('model = "cnn_small"', 'model = "vgg"', "teacher: model must be among .*'vgg'"),
    ],
)
def test_a_wrong_teacher_is_refused(monkeypatch, right, wrong, message):
    text = declared._text("mnist")
    assert text.count(right) == 1
    monkeypatch.setattr(declared, "_text", lambda name: text.replace(right, wrong))
    with pytest.raises(ValueError, match=message):
        load_grids("mnist")


def test_the_trials_of_a_seed_share_one_teacher(store, trainings):
    stacks = {"cpu": {"linear": 1}}
    assert taught_runner(store, stacks=stacks).run() == "finished"
    assert [model for model, _, _ in trainings].count("mlp100") == 3
    assert [model for model, _, _ in trainings].count("linear") == len(store.rows()) == 6
    assert {row.spec.bag_size for row in store.rows()} == {10}
    assert all(len(row.arrays["test_error"]) == 2 for row in store.rows())


def test_teachers_are_trained_before_the_stack(store, trainings):
    runner = taught_runner(store)
    found = runner._trainer(runner.missing())  # all seeds, as on a GPU
    assert len(found) == 6
    assert [(model, len(results)) for model, _, results in trainings] == [
        ("mlp100", 3),
        ("linear", 6),
    ]


def test_the_probabilities_of_the_teacher_are_the_proportions(store, trainings):
    taught_runner(store, seeds=(0,)).run()
    (_, [bags], [teacher]), (_, each, _) = trainings
    assert bags.equal_size == 10
    wanted = logits_on(teacher.model, bags.X).sigmoid().squeeze(-1).numpy()
    for singles in each:
        assert singles.equal_size == 1
        np.testing.assert_array_equal(singles.proportions[singles.bag_of_row], wanted)


def test_a_taught_net_learns(store):
    taught_runner(store, seeds=(0,), epochs=30).run()
    assert min(row.arrays["test_error"].min() for row in store.rows()) < 0.15


def test_an_interrupted_teacher_teaches_nothing(store, monkeypatch):
    def cut(trials, bags, *, model, **options):
        assert model == "mlp100"
        results = train(trials, bags, model=model, **options)
        return [replace(result, interrupted=True) for result in results]

    monkeypatch.setattr("unbag_paper.runs.trainer.train", cut)
    runner = taught_runner(store)
    assert runner.run() == "interrupted"
    assert store.rows() == []
    assert len(runner.missing()) == 6


def test_a_teacher_that_is_not_finite_is_refused(store, monkeypatch):
    def spoil(trials, bags, **options):
        results = train(trials, bags, **options)
        results[0].model[-1].bias.data.fill_(torch.nan)
        return results

    monkeypatch.setattr("unbag_paper.runs.trainer.train", spoil)
    with pytest.raises(TrainingError, match="The mlp100 of seed 0 that was to teach others ended"):
        taught_runner(store).run()
    assert store.rows() == []


def test_a_stack_costs_each_of_its_teachers_once(store):
    runner = taught_runner(store)
    stack = runner.missing()
    assert len(teachers_of(stack)) == 3
    untaught = [replace(trial, teacher="") for trial in stack]
    costs = runner.costs
    both = costs.stack(untaught) + costs.stack(teachers_of(stack))
    assert costs.stack(stack) == pytest.approx(both)


def test_what_a_teacher_took_is_not_counted_as_its_pupils(store):
    runner = taught_runner(store)
    trial = runner.missing()[0]
    before = runner.costs.trial(trial)
    runner.run()
    assert runner.costs.trial(trial) == before
