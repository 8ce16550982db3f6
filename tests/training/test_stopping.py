"""When a trial stops, and that its model is that of its best epoch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.support.small_problem import problem
from torch import nn

from unbag import make_bags
from unbag.training import Settings, Trial, train
from unbag.training.monitor import Monitor

SHORT = Settings(max_epochs=4, bags_per_batch=5)


def test_early_stopping_keeps_the_best_epoch(rng):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    values = iter([0.5, 0.3, 0.4, 0.35, 0.1, 0.1])
    seen = []

    def measure(logits):
        seen.append(logits[0].clone())
        return torch.tensor([next(values)])

    settings = Settings(max_epochs=6, bags_per_batch=5, patience=2, criterion="script")
    [result] = train([Trial()], bags, monitors=[Monitor("script", X, measure)], settings=settings)
    assert result.stopped == "patience"
    assert result.best_epoch == 1
    assert result.n_epochs == 4
    with torch.no_grad():
        torch.testing.assert_close(result.model(torch.tensor(X)), seen[1])


def with_norm(input_shape, n_outputs):
    return nn.Sequential(nn.BatchNorm1d(*input_shape), nn.Linear(*input_shape, n_outputs))


class RunningMean(nn.Module):
    """Subtracts a running mean, which it changes in place, as a stack can follow."""

    def __init__(self, input_shape, n_outputs):
        super().__init__()
        self.layer = nn.Linear(*input_shape, n_outputs)
        self.register_buffer("mean", torch.zeros(input_shape))

    def forward(self, x):
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean(dim=0) + 0.01)
        return self.layer(x - self.mean)


@pytest.mark.parametrize(
    ("build", "n_trials"), [(with_norm, 1), (RunningMean, 1), (RunningMean, 2)]
)
def test_the_best_epoch_has_its_own_buffers(rng, build, n_trials):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    values, seen = iter([0.5, 0.3, 0.4, 0.4]), []

    def measure(logits):
        seen.append(logits.clone())
        return torch.full((n_trials,), next(values))

    monitors, settings = [Monitor("script", X, measure)], replace(SHORT, criterion="script")
    trials = [Trial(seed=seed) for seed in range(n_trials)]
    results = train(trials, bags, model=build, monitors=monitors, settings=settings)
    for number, result in enumerate(results):
        assert result.best_epoch == 1 and result.stacked == (n_trials > 1)
        with torch.no_grad():
            torch.testing.assert_close(result.model(torch.tensor(X)), seen[1][number])


@pytest.mark.parametrize(
    ("values", "best"),
    [([np.nan, 0.5, np.nan, 0.2, 0.3], 3), ([0.5, np.nan, np.nan, 0.6, 0.7], 0), ([np.nan] * 5, 0)],
)
def test_a_criterion_that_is_no_number_is_never_best(rng, values, best):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    left = iter(values)
    monitor = Monitor("script", X, lambda logits: torch.tensor([next(left)]))
    settings = Settings(max_epochs=5, bags_per_batch=5, criterion="script")
    [result] = train([Trial()], bags, monitors=[monitor], settings=settings)
    assert result.best_epoch == best


def test_early_stopping_in_a_stack_is_each_trial_s_own(rng):
    X, y = problem(rng)
    bags = make_bags(X, y, bag_size=10, seed=0)
    curves = torch.tensor([[0.5, 0.6, 0.7, 0.1, 0.1], [0.5, 0.4, 0.3, 0.2, 0.1]])
    epoch = iter(range(5))
    monitor = Monitor("script", X, lambda logits: curves[:, next(epoch)])
    settings = Settings(max_epochs=5, bags_per_batch=5, patience=2, criterion="script")
    stopped, full = train([Trial(), Trial(seed=1)], bags, monitors=[monitor], settings=settings)
    assert (stopped.stopped, stopped.best_epoch, stopped.n_epochs) == ("patience", 0, 3)
    assert (full.stopped, full.best_epoch, full.n_epochs) == ("max_epochs", 4, 5)
