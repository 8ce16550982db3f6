"""Trainings in several runs: trials go on as if they had never been stopped."""

import numpy as np
import pytest
import torch
from torch import nn

from unbag.bags import make_bags, split_bags
from unbag.errors import StackingWarning
from unbag.rules import DebiasedSquare, get_rule
from unbag.training import Settings, Training, Trial, train

TRIALS = [
    Trial(rule=DebiasedSquare(debias="moving"), learning_rate=1e-2, seed=0),
    Trial(rule=get_rule("proportion_square"), learning_rate=1e-3, seed=1),
    Trial(rule=DebiasedSquare(), learning_rate=1e-2, seed=2),
    Trial(rule=DebiasedSquare(debias="moving"), learning_rate=3e-3, seed=3),
    Trial(rule=DebiasedSquare(), learning_rate=1e-3, seed=4),
]


@pytest.fixture
def bags(rng):
    X = rng.normal(size=(600, 3)).astype("float32")
    return make_bags(X, X[:, 0] > 0, bag_size=10, seed=0)


def assert_alike(results, expected):
    for one, other in zip(results, expected, strict=True):
        assert one.trial == other.trial
        for name, values in other.history.items():
            np.testing.assert_allclose(one.history[name], values, rtol=1e-3, atol=1e-5)
        state = other.model.state_dict()
        for name, tensor in one.model.state_dict().items():
            torch.testing.assert_close(tensor, state[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("redraw", [False, True])
def test_trials_go_on_as_in_one_run(bags, redraw):
    settings = Settings(max_epochs=6, redraw=redraw)
    training = Training(TRIALS, bags, settings=settings)
    for epoch in (2, 4, 6):
        training.run(until=epoch)
    assert_alike(training.results(), train(TRIALS, bags, settings=settings))


def with_torch_dropout(input_shape, n_outputs):
    return nn.Sequential(nn.Linear(*input_shape, 8), nn.Dropout(0.5), nn.Linear(8, n_outputs))


def test_models_that_cannot_be_stacked_go_on_too(bags):
    with pytest.warns(StackingWarning):
        training = Training(TRIALS, bags, model=with_torch_dropout)
    training.run(until=2)
    training.run(until=4)
    settings = Settings(max_epochs=4)
    expected = [
        train([trial], bags, model=with_torch_dropout, settings=settings) for trial in TRIALS
    ]
    assert_alike(training.results(), [result for [result] in expected])


def test_a_training_goes_on_from_its_results(bags):
    kept, _ = split_bags(bags, share=0.5, seed=0)
    settings = Settings(max_epochs=3, redraw=True)
    first = train(TRIALS, kept, settings=settings)
    later = train(TRIALS, bags, settings=settings, resume=first)
    for one, two in zip(first, later, strict=True):
        assert (one.n_epochs, two.n_epochs) == (3, 6)
        np.testing.assert_array_equal(two.history["loss"][:3], one.history["loss"])
    one_more = train(TRIALS[:1], bags, settings=settings, resume=first[:1])
    assert_alike(one_more, later[:1])


def test_trials_that_share_batches_are_stacked_on_unequal_bags(rng):
    X = rng.normal(size=(60, 3)).astype("float32")
    unequal = make_bags(X, X[:, 0] > 0, bag_size=7, seed=0)
    settings = Settings(max_epochs=2, batch_seed=5)
    trials = TRIALS[:2]
    assert not any(r.stacked for r in train(trials, unequal, settings=Settings(max_epochs=1)))
    together = train(trials, unequal, settings=settings)
    assert all(result.stacked for result in together)
    alone = [train([trial], unequal, settings=settings)[0] for trial in trials]
    assert_alike(together, alone)
