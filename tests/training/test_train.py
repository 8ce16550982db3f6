"""The training loop: what a trial gives alone it gives in a stack, and seeds decide everything."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from tests.support.small_problem import problem, weights_of
from torch import nn

from unbag import Bags, make_bags
from unbag.errors import BagDataError, StackingWarning
from unbag.models import MODELS
from unbag.rules import CountLikelihood, DebiasedSquare, EasyLog, ProportionSquare
from unbag.training import Settings, Trial, train
from unbag.training.scoring import scores_of
from unbag.training.stack import Stack

SHORT = Settings(max_epochs=4, bags_per_batch=5)


def mixed_trials():
    rules = [DebiasedSquare(), DebiasedSquare(debias="moving"), ProportionSquare(), EasyLog()]
    return [Trial(rule, rate, seed) for rule in rules for rate, seed in [(1e-2, 0), (1e-3, 7)]]


@pytest.mark.parametrize("redraw", [False, True])
@pytest.mark.parametrize("bag_size", [10, 11], ids=["equal", "unequal"])
def test_a_stack_gives_what_each_trial_gives_alone(rng, bag_size, redraw):
    X, y = problem(rng)
    trials = mixed_trials()
    bags = [make_bags(X, y, bag_size=bag_size, seed=t.seed) for t in trials]
    settings = Settings(max_epochs=3, bags_per_batch=5, redraw=redraw)
    together = train(trials, bags, settings=settings)
    for trial, own, result in zip(trials, bags, together, strict=True):
        [alone] = train([trial], own, settings=settings)
        assert result.trial == trial
        assert result.stacked and not alone.stacked
        torch.testing.assert_close(weights_of(result), weights_of(alone), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(result.history["loss"], alone.history["loss"], rtol=1e-4)


def test_dropout_is_the_same_in_a_stack(rng):
    X = rng.integers(0, 256, size=(60, 1, 16, 16), dtype=np.uint8)
    bags = make_bags(X, rng.integers(0, 2, size=60), bag_size=5, seed=0)
    trials = [Trial(seed=seed) for seed in range(2)]
    settings = Settings(max_epochs=2, bags_per_batch=6)
    together = train(trials, bags, model="cnn_small", settings=settings)
    [alone] = train(trials[1:], bags, model="cnn_small", settings=settings)
    torch.testing.assert_close(weights_of(together[1]), weights_of(alone), rtol=1e-3, atol=1e-4)


def test_only_a_progress_bar_asks_how_it_goes(rng, monkeypatch):
    asked = []
    monkeypatch.setattr(Stack, "summary", lambda stack: asked.append(stack) or "0.5")
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    train([Trial()], bags, settings=SHORT)
    assert asked == []
    train([Trial()], bags, settings=replace(SHORT, progress=True))
    assert len(asked) == SHORT.max_epochs


def test_same_seed_same_bits(rng):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    first, second = (train(mixed_trials(), bags, settings=SHORT) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert torch.equal(weights_of(a), weights_of(b))
        assert (a.history["loss"] == b.history["loss"]).all()


@pytest.mark.parametrize("shuffle", [False, True])
def test_unshuffled_batches_are_the_same_for_every_seed(rng, shuffle):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    settings = replace(SHORT, shuffle=shuffle)
    trials, seen = [Trial(seed=0), Trial(seed=1)], []

    class Watched(ProportionSquare):
        def loss(self, logits, batch):
            seen.append(batch.proportions.tolist())
            return super().loss(logits, batch)

    for trial in trials:
        train([replace(trial, rule=Watched())], bags, settings=settings)
    first, second = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert (first == second) != shuffle
    if not shuffle:
        np.testing.assert_allclose(first[0], [bags.proportions[:5]], rtol=1e-6)


def test_another_seed_gives_another_net(rng):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    a, b = train([Trial(seed=0), Trial(seed=1)], bags, settings=SHORT)
    assert not torch.equal(weights_of(a), weights_of(b))


def test_training_leaves_the_global_generator_alone(rng):
    X, y = problem(rng)
    before = torch.get_rng_state()
    train([Trial()], make_bags(X, y, bag_size=10, seed=0), settings=SHORT)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("rule", [DebiasedSquare(), CountLikelihood()], ids=str)
def test_it_learns(rng, rule):
    X, y = problem(rng, n=2000)
    bags, settings = make_bags(X, y, bag_size=10, seed=0), Settings(10, bags_per_batch=10)
    [result] = train([Trial(rule, 1e-2)], bags, settings=settings)
    assert ((scores_of(result, X) > 0.5) != y).mean() < 0.13  # the label noise alone makes 9 %


@pytest.mark.parametrize(
    "extra", [lambda: nn.BatchNorm1d(8), lambda: nn.Dropout(0.5)], ids=["norm", "dropout"]
)
def test_a_model_that_cannot_be_stacked_is_trained_in_turn(rng, extra):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)

    def build(input_shape, n_outputs):
        return nn.Sequential(nn.Linear(input_shape[0], 8), extra(), nn.Linear(8, n_outputs))

    trials = [Trial(seed=0), Trial(seed=1)]
    with pytest.warns(StackingWarning, match="one after the other"):
        results = train(trials, bags, model=build, settings=SHORT)
    [alone] = train(trials[1:], bags, model=build, settings=SHORT)
    assert not results[1].stacked
    np.testing.assert_allclose(results[1].history["loss"], alone.history["loss"], rtol=1e-5)


def test_a_model_vmap_cannot_run_is_trained_in_turn(rng):
    class DataDependent(nn.Module):
        def __init__(self, n_features):
            super().__init__()
            self.dense = nn.Linear(n_features, 1)

        def forward(self, x):
            return self.dense(x if x.sum() > 0 else -x)

    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    with pytest.warns(StackingWarning, match="vmap"):
        train(
            [Trial(), Trial(seed=1)], bags, model=lambda s, n: DataDependent(s[0]), settings=SHORT
        )


def test_frozen_parameters_stay(rng):
    X, y = problem(rng)

    def build(input_shape, n_outputs):
        net = nn.Sequential(nn.Linear(input_shape[0], 8), nn.Linear(8, n_outputs))
        net[0].weight.requires_grad_(False).fill_(0.5)
        return net

    bags = make_bags(X, y, bag_size=10, seed=0)
    for result in train([Trial(), Trial(seed=1)], bags, model=build, settings=SHORT):
        assert (result.model[0].weight == 0.5).all()


class Tied(nn.Module):
    """Two layers with one weight, and a buffer that its state leaves out."""

    def __init__(self, input_shape, n_outputs):
        super().__init__()
        self.first, self.second = (nn.Linear(*input_shape, *input_shape) for _ in range(2))
        self.second.weight = self.first.weight
        self.last = nn.Linear(*input_shape, n_outputs)
        self.register_buffer("scale", torch.rand(()), persistent=False)

    def forward(self, x):
        return self.last(self.second(self.first(x).relu()).relu()) * self.scale


def test_tied_weights_and_buffers_without_state_are_stacked(rng):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    trials = [Trial(seed=0), Trial(seed=1)]
    together = train(trials, bags, model=Tied, settings=SHORT)
    for trial, result in zip(trials, together, strict=True):
        [alone] = train([trial], bags, model=Tied, settings=SHORT)
        assert result.stacked and result.model.second.weight is result.model.first.weight
        x = torch.from_numpy(X)
        torch.testing.assert_close(result.model(x), alone.model(x), rtol=1e-4, atol=1e-5)


def test_ctrl_c_returns_what_is_trained(rng, monkeypatch):
    X, y = problem(rng)
    bags, begin = make_bags(X, y, bag_size=10, seed=0), Stack.begin

    def interrupted(stack, epoch):
        if epoch == 2:
            raise KeyboardInterrupt
        begin(stack, epoch)

    monkeypatch.setattr(Stack, "begin", interrupted)
    [result] = train([Trial()], bags, settings=SHORT)
    assert result.interrupted
    assert result.n_epochs == 2


def test_bags_of_several_trials_must_have_the_same_instances(rng):
    X, y = problem(rng)
    trials, first = [Trial(), Trial(seed=1)], make_bags(X, y, bag_size=10, seed=0)
    same = make_bags(X.copy(), y, bag_size=10, seed=0)
    train(trials, [first, same], settings=SHORT)
    pixels = rng.integers(0, 256, size=(400, 2, 2), dtype=np.uint8)
    for one, other in [(X, -X), (X, X[:390]), (pixels, pixels.astype("float32"))]:
        several = [make_bags(given, y[: len(given)], bag_size=10, seed=0) for given in (one, other)]
        with pytest.raises(BagDataError, match="bags must share one X"):
            train(trials, several, settings=SHORT)


def test_sample_splitting_spends_half_of_the_bags(rng):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    seen = []

    @dataclass(frozen=True)
    class Watched(EasyLog):
        def loss(self, logits, batch):
            seen.append(batch)
            return super().loss(logits, batch)

    train([Trial(Watched(prior="split"))], bags, settings=replace(SHORT, max_epochs=1))
    trained = np.concatenate([batch.proportions.numpy().ravel() for batch in seen])
    assert len(trained) == bags.n_bags / 2
    # The prior comes from the other half: together, the halves have the mean of all bags.
    others = 2 * bags.prior - trained.mean()
    assert abs(float(seen[0].prior) - others) < 1e-6
    assert abs(others - trained.mean()) > 1e-3


def test_multiclass_and_multilabel(rng):
    X = rng.normal(size=(300, 5)).astype("float32")
    one_hot = np.eye(3)[X[:, :3].argmax(axis=1)]
    bags = make_bags(X, one_hot, bag_size=10, seed=0)
    assert bags.task == "multiclass"
    [result] = train([Trial()], bags, settings=SHORT)
    assert result.model(torch.tensor(X)).shape == (300, 3)
    bags = make_bags(X, (X[:, :2] > 0), bag_size=10, seed=0)
    assert bags.task == "multilabel"
    [result] = train([Trial()], bags, settings=SHORT)
    assert result.model(torch.tensor(X)).shape == (300, 2)


def test_known_noise_reaches_the_rule(rng):
    X, y = problem(rng)
    exact = make_bags(X, y, bag_size=10, seed=0)
    noisy = Bags(X, exact.rows, exact.sizes, exact.proportions, exact.ids, np.full(40, 0.01))
    [a] = train([Trial()], exact, settings=SHORT)
    [b] = train([Trial()], noisy, settings=SHORT)
    assert (b.history["loss"] < a.history["loss"]).all()
    together = train([Trial(), Trial()], [exact, noisy], settings=SHORT)
    for one, alone in zip(together, (a, b), strict=True):
        np.testing.assert_allclose(one.history["loss"], alone.history["loss"], rtol=1e-4)


def test_bad_arguments_are_refused(rng):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    with pytest.raises(ValueError, match="learning_rate"):
        Trial(learning_rate=0)
    with pytest.raises(BagDataError, match="bags_per_batch"):
        train([Trial()], bags, settings=Settings(bags_per_batch=1))
    with pytest.raises(ValueError, match="model must be one of"):
        train([Trial()], bags, model="nonsense")
    with pytest.raises(ValueError, match="trials must hold at least one"):
        train([], bags)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_model_builds_and_runs(model):
    net = MODELS[model]((3, 32, 32), 2)
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 2)
