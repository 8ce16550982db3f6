"""Many workers give what one gives: losses, gradients, trainings, and after a kill."""

import json
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch
from paper.tests.support import sharded_work as work
from torch import nn

from unbag.errors import BagDataError, WorkerError
from unbag.training import Settings, Trial, train
from unbag_paper.compiled import EngineSettings
from unbag_paper.compiled.monitors import Monitor, held_out_risk
from unbag_paper.distributed.sharding import shard_bags
from unbag_paper.distributed.training import train_sharded
from unbag_paper.distributed.workers import lone_group, run_workers
from unbag_paper.errors import StoreError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def of_two(folder):
    """What two workers found."""
    return run_workers(work.everything, folder, n_workers=2)


def test_every_rule_has_the_loss_and_gradient_of_one_process(of_two):
    gaps = of_two["gaps"]
    assert set(gaps) == {str(rule) for rule in work.EVERY_RULE}
    assert max(gaps.values()) < 1e-12


def test_the_comparison_rejects_sums_without_a_backward(of_two):
    assert min(of_two["gaps without a backward"].values()) > 1e-3


def test_workers_without_noise_have_exact_proportions(of_two):
    assert of_two["noise"].tolist() == [0.0] * 6 + [0.01] * 24


def test_every_rule_trains_as_in_one_process(of_two):
    assert len(of_two["trainings"]) == len(work.EVERY_RULE)
    for result in of_two["trainings"]:
        [alone] = train([result.trial], work.unequal_bags(), settings=work.SETTINGS)
        np.testing.assert_allclose(result.history["loss"], alone.history["loss"], rtol=1e-4)
        for a, b in zip(result.model.parameters(), alone.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_a_killed_worker_is_recovered_from_the_last_checkpoint(of_two, folder):
    """Steps that the killed epoch had already taken, taken again, would change the weights."""
    losses, weights = run_workers(work.train_with_a_kill, folder, folder / "flag", n_workers=2)
    assert (folder / "flag").exists()
    np.testing.assert_array_equal(losses["loss"], of_two["calm"][0]["loss"])
    for a, b in zip(weights, of_two["calm"][1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_error_in_a_worker_is_not_tried_again():
    with pytest.raises(WorkerError, match="a reason"):
        run_workers(work.fail_on_the_second, n_workers=2)


def test_workers_that_are_always_killed_are_given_up():
    with pytest.raises(WorkerError, match="1 made"):
        run_workers(work.die, n_workers=1, max_restarts=0)


@pytest.fixture
def alone():
    """A group of one worker: this process."""
    with lone_group():
        yield


@pytest.mark.usefixtures("alone")
def test_a_training_goes_on_where_it_stopped(tmp_path):
    bags, trial = work.unequal_bags(), Trial(work.EVERY_RULE[-1], seed=3)
    short = Settings(max_epochs=2, bags_per_batch=7, redraw=True)
    long = Settings(max_epochs=5, bags_per_batch=7, redraw=True)
    train_sharded(trial, bags, settings=short, checkpoints=tmp_path)
    again = train_sharded(trial, bags, settings=long, checkpoints=tmp_path)
    whole = train_sharded(trial, bags, settings=long)
    np.testing.assert_array_equal(again.history["loss"], whole.history["loss"])
    assert [path.name for path in tmp_path.iterdir()] == ["epoch-000004"]
    for a, b in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.usefixtures("alone")
def test_the_state_of_another_training_is_refused(tmp_path):
    settings = work.SETTINGS
    train_sharded(Trial(seed=0), work.unequal_bags(), settings=settings, checkpoints=tmp_path)
    for trial, bags in [(Trial(seed=1), work.unequal_bags()), (Trial(), work.unequal_bags(1))]:
        with pytest.raises(StoreError, match="another training"):
            train_sharded(trial, bags, settings=settings, checkpoints=tmp_path)
    [state] = tmp_path.glob("epoch-*/state.json")
    assert json.loads(state.read_text())["epoch"] == settings.max_epochs - 1


def changes(bags, settings):
    """Arguments of trainings that differ from this one in one thing, by its name."""
    other = {"schedule": "constant", "bags_per_batch": 9, "redraw": False, "shuffle": False}
    other |= {"precision": "bfloat16"}
    return {
        "proportions": {"bags": replace(bags, proportions=bags.proportions[::-1])},
        "noise_variance": {"bags": replace(bags, noise_variance=np.full(bags.n_bags, 0.01))},
        "input_shape": {"bags": replace(bags, X=bags.X[:, :2])},
        "model": {"model": "mlp100"},
        "monitors": {"monitors": [held_out_risk(bags)]},
    } | {name: {"settings": replace(settings, **{name: value})} for name, value in other.items()}


@pytest.mark.usefixtures("alone")
def test_whatever_else_differs_is_named(tmp_path):
    bags, settings = work.unequal_bags(), work.SETTINGS
    train_sharded(Trial(), bags, settings=settings, checkpoints=tmp_path)
    same = {"bags": bags, "settings": replace(settings, max_epochs=6)}
    for what, change in changes(**same).items():
        with pytest.raises(StoreError, match=f"another training.*{what} is "):
            train_sharded(Trial(), **same | change, checkpoints=tmp_path)
    assert train_sharded(Trial(), **same, checkpoints=tmp_path).n_epochs == 6


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_the_precision_is_that_of_the_settings(precision):
    seen, before = [], torch.backends.cuda.matmul.allow_tf32

    def measure(logits):
        seen.append(torch.backends.cuda.matmul.allow_tf32)
        return logits.mean(dim=(1, 2))

    bags, settings = work.unequal_bags(), EngineSettings(max_epochs=1, precision=precision)
    train_sharded(Trial(), bags, monitors=[Monitor("m", bags.X, measure)], settings=settings)
    assert seen == [precision == "tf32"]
    assert torch.backends.cuda.matmul.allow_tf32 == before


@pytest.mark.usefixtures("alone")
def test_a_trained_net_takes_batches_of_any_size():
    result = train_sharded(Trial(), work.unequal_bags(), settings=Settings(max_epochs=1))
    assert result.model.train()(torch.zeros(7, 3)).shape == (7, 1)


@pytest.mark.usefixtures("alone")
def test_batch_normalisation_is_refused():
    def build(shape, n_outputs):
        return nn.Sequential(nn.BatchNorm1d(shape[0]), nn.Linear(shape[0], n_outputs))

    with pytest.raises(ValueError, match="batch normalisation"):
        train_sharded(Trial(), work.unequal_bags(), model=build)


def test_shards_hold_every_bag_once():
    bags = work.unequal_bags()
    for n_workers in (1, 2, 7, 30):
        ids = [shard_bags(bags, rank, n_workers).ids for rank in range(n_workers)]
        assert list(chain(*ids)) == bags.ids
        assert all(ids)
    with pytest.raises(BagDataError, match="n_workers"):
        shard_bags(bags, 0, 31)
