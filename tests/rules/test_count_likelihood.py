"""The count likelihood where enumeration cannot reach."""

import numpy as np
import pytest
import torch
from scipy import special, stats
from tests.support import laws

from unbag import BagBatch
from unbag.rules import CountLikelihood
from unbag.rules.count_likelihood import own_logits


def log_mass_by_convolution(logits, count):
    """Dynamic programming in extended precision, one Bernoulli at a time."""
    mass = np.ones(1, dtype=np.longdouble)
    for logit in logits.astype(np.longdouble):
        mass = np.convolve(mass, special.expit(np.array([-logit, logit])))
    return float(np.log(mass[count]))


@pytest.mark.parametrize("bag_size", [7, 100, 1000])
def test_exact_in_body_and_tails(bag_size, rng):
    logits = rng.normal(size=bag_size)
    for count in {0, 1, bag_size // 3, bag_size // 2, bag_size - 1, bag_size}:
        batch = BagBatch(torch.tensor([count / bag_size], dtype=torch.double), bag_size)
        value = -float(CountLikelihood()(torch.tensor(logits), batch))
        assert value == pytest.approx(log_mass_by_convolution(logits, count), rel=1e-9)


LOGITS = {
    "two groups": lambda z: 20 * np.sign(z) + z,
    "heavy tails": lambda z: np.clip(z**5, -300, 300),
    "a ladder": lambda z: 0.3 * np.arange(len(z)) - 0.15 * len(z),
    "few among many": lambda z: np.where(z > 1.5, 12 + z, -8 + 0.1 * z),
    "one score for all": lambda z: np.full(len(z), -3.0),
}


@pytest.mark.parametrize("bag_size", [24, 25, 60, 400])
@pytest.mark.parametrize("shape", LOGITS)
def test_few_frequencies_are_enough_however_scores_lie(shape, bag_size, rng):
    """The shift to the expected count is hardest to find where scores are far apart."""
    logits = LOGITS[shape](rng.normal(size=bag_size))
    for count in rng.integers(1, bag_size, size=5):
        batch = BagBatch(torch.tensor([count / bag_size], dtype=torch.double), bag_size)
        value = -float(CountLikelihood()(torch.tensor(logits), batch))
        assert value == pytest.approx(log_mass_by_convolution(logits, count), rel=1e-9, abs=1e-12)


def test_equal_scores_give_the_binomial_law():
    logits = torch.full((5000,), -0.4, dtype=torch.double)
    batch = BagBatch(torch.tensor([0.3], dtype=torch.double), 5000)
    wanted = -stats.binom.logpmf(1500, 5000, torch.sigmoid(logits[0]).item())
    assert float(CountLikelihood(exact_up_to=5000)(logits, batch)) == pytest.approx(wanted)


@pytest.mark.parametrize("bag_size", [200, 1000])
def test_gaussian_and_exact_agree_where_they_overlap(bag_size, generator):
    logits = torch.randn(3 * bag_size, generator=generator, dtype=torch.double)
    for proportion in (0.1, 0.4, 0.9):
        batch = BagBatch(torch.full((3,), proportion, dtype=torch.double), bag_size)
        exact = CountLikelihood()(logits, batch)
        gaussian = CountLikelihood(exact_up_to=0)(logits, batch)
        assert abs(float(exact - gaussian)) < 1 / bag_size  # the next order of the expansion


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_each_bag_has_the_law_of_its_own_size(task, generator):
    """One bag too large for the exact law leaves the others with theirs."""
    sizes = [2, 12, 5, 11, 3]
    rule = CountLikelihood(exact_up_to=10)
    logits, _, batch = laws.random_problem(generator, sizes, task)
    outputs = own_logits(torch.stack([logits, 1 - logits]), batch).requires_grad_()
    found = rule.of_each_bag(outputs, batch)
    alone = [
        rule.of_each_bag(rows, BagBatch(share[None], size, task=task))
        for rows, share, size in zip(
            outputs.split(sizes, dim=-2), batch.proportions, sizes, strict=True
        )
    ]
    torch.testing.assert_close(found, torch.cat(alone, dim=-2))
    weights = torch.randn(found.shape, generator=generator, dtype=torch.double)
    wanted = torch.autograd.grad((torch.cat(alone, dim=-2) * weights).sum(), outputs)
    torch.testing.assert_close(torch.autograd.grad((found * weights).sum(), outputs), wanted)


def test_gradient_is_posterior_minus_score(generator):
    """d log P(count) / d logit_j = P(y_j = 1 | count) - f_j, here by Bayes on a pair."""
    logits = torch.randn(2, generator=generator, dtype=torch.double, requires_grad=True)
    batch = BagBatch(torch.tensor([0.5], dtype=torch.double), 2)
    (gradient,) = torch.autograd.grad(-CountLikelihood()(logits, batch), logits)
    f = logits.sigmoid()
    first, second = f[0] * (1 - f[1]), f[1] * (1 - f[0])
    wanted = torch.stack([first, second]) / (first + second) - f
    torch.testing.assert_close(gradient, wanted.detach())


def test_noise_widens_the_law():
    batch = BagBatch(torch.tensor([0.31]), 10, noise_variance=torch.tensor([0.01]))
    wanted = -stats.norm.logpdf(3.1, loc=5, scale=np.sqrt(2.5 + 100 * 0.01))
    assert float(CountLikelihood()(torch.zeros(10), batch)) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(("count", "probability"), [(1, 0.25), (2, 0.5), (3, 0.25)])
def test_certain_labels_count_as_such(count, probability):
    """Infinite logits used to give NaN."""
    logits = torch.tensor([torch.inf, -torch.inf, 0.0, 0.0], dtype=torch.double).requires_grad_()
    loss = CountLikelihood()(logits, BagBatch(torch.tensor([count / 4]).double(), 4))
    assert float(loss.detach()) == pytest.approx(-np.log(probability), rel=1e-6)
    [gradient] = torch.autograd.grad(loss, logits)
    assert gradient.isfinite().all()
    three = torch.tensor([[torch.inf, 0, 0], [0, 0, -torch.inf]]).double()
    classes = BagBatch(torch.tensor([[0.5, 0.5, 0]]).double(), 2, task="multiclass")
    assert CountLikelihood()(three, classes).isfinite()
