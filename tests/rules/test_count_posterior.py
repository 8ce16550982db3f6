"""The posterior of the labels given a count, and the losses it is put into."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy import special

from unbag import BagBatch
from unbag.rules import CountLikelihood, CountPosterior
from unbag.rules.count_posterior import tilted_posterior

BAG = torch.tensor([0.9, -1.2, 0.3, -0.2, 1.7], dtype=torch.double)


def batch_of(count, size=5):
    return BagBatch(torch.tensor([count / size], dtype=torch.double), size)


def gradient(rule, logits, batch):
    logits = logits.clone().requires_grad_()
    return torch.autograd.grad(rule(logits, batch), logits)[0]


def test_the_posterior_adds_up_to_the_count():
    for count in range(6):
        posterior = CountPosterior().posterior(BAG, batch_of(count))
        assert float(posterior.sum()) == pytest.approx(count)


def test_true_scores_are_the_mean_posterior():
    """So they are a stationary point: what the law of iterated expectations says, term by term."""
    scores = BAG.sigmoid().numpy()
    mean = np.zeros(5)
    for labels in product([0, 1], repeat=5):
        mass = np.prod(np.where(np.array(labels) == 1, scores, 1 - scores))
        mean += mass * CountPosterior().posterior(BAG, batch_of(sum(labels)))[:, 0].numpy()
    np.testing.assert_allclose(mean, scores, rtol=1e-9)


@pytest.mark.parametrize("votes", [1, 2, 5])
def test_the_gradient_is_that_of_the_count_likelihood_weighted(votes):
    """The weight is the same for every instance of a score: so the loss is proper."""
    found = gradient(CountPosterior(votes), BAG, batch_of(2))
    plain = gradient(CountLikelihood(), BAG, batch_of(2))
    scores = BAG.sigmoid()
    weight = (scores * (1 - scores)) ** votes / special.beta(votes + 1, votes) / 5
    torch.testing.assert_close(found, plain * weight)


def test_one_vote_is_the_square_loss(generator):
    logits = torch.randn(6, generator=generator, dtype=torch.double)
    labels = torch.tensor([0, 1, 1, 0, 0, 1], dtype=torch.double)
    found = CountPosterior(votes=1)(logits, BagBatch(labels, 1))
    torch.testing.assert_close(found, (logits.sigmoid() - labels).square().mean())


def test_many_votes_are_the_zero_one_loss():
    logits, labels = torch.tensor([3.0, -3.0, 3.0, -3.0]), torch.tensor([1.0, 0.0, 0.0, 1.0])
    assert float(CountPosterior(votes=20)(logits, BagBatch(labels, 1))) == pytest.approx(0.5)


def test_noise_in_the_counts_weakens_what_they_say():
    exact = CountPosterior().posterior(BAG, batch_of(5))
    noisy = CountPosterior().posterior(
        BAG, BagBatch(torch.ones(1, dtype=torch.double), 5, torch.tensor([100.0]))
    )
    torch.testing.assert_close(exact, torch.ones_like(exact))
    torch.testing.assert_close(noisy[:, 0], BAG.sigmoid(), atol=0.01, rtol=0)


def test_it_works_where_gradients_are_switched_off():
    with torch.no_grad():
        assert torch.isfinite(CountPosterior()(BAG, batch_of(2)))


@pytest.mark.parametrize("votes", [0, -1, 1.5, 21])
def test_votes_are_a_whole_number(votes):
    with pytest.raises(ValueError, match="votes"):
        CountPosterior(votes)


def exact_posterior(logits, counts):
    """Posterior of three classes given all counts of the bag, by the law of the other instances."""
    scores, found = special.softmax(logits, axis=1), np.zeros(logits.shape)
    for j in range(len(logits)):
        law = np.zeros((len(logits) + 1, len(logits) + 1))  # of the first two counts
        law[0, 0] = 1
        for first, second, third in np.delete(scores, j, axis=0):
            moved = third * law
            moved[1:] += first * law[:-1]
            moved[:, 1:] += second * law[:, :-1]
            law = moved
        left = counts[None] - np.eye(3, dtype=int)
        possible = (left >= 0).all(axis=1)
        found[j] = scores[j] * np.where(possible, law[left[:, 0], left[:, 1]], 0)
    return found / found.sum(axis=1, keepdims=True)


def joint_errors(rng, size, n_draws=20):
    """Mean error of the joint posterior, and of each class's by its own count alone."""
    errors = []
    for _ in range(n_draws):
        logits = rng.normal(size=(size, 3))
        counts = np.bincount(rng.integers(0, 3, size), minlength=3)
        exact = exact_posterior(logits, counts)
        bag = BagBatch(torch.tensor(counts[None] / size), size, task="multiclass")
        joint = CountPosterior().posterior(torch.tensor(logits), bag).numpy()
        apart = CountPosterior().posterior(
            torch.tensor(special.logit(special.softmax(logits, axis=1))),
            BagBatch(torch.tensor(counts[None] / size), size, task="multilabel"),
        )
        errors.append([np.abs(joint - exact).mean(), np.abs(apart.numpy() - exact).mean()])
    return np.mean(errors, axis=0)


def test_several_classes_have_one_joint_posterior(rng):
    """One class against the rest, as it was, forgets what the counts of the others say."""
    (small, _), (large, apart) = joint_errors(rng, 5), joint_errors(rng, 20)
    assert large < small / 2  # of order 1/k
    assert large < 0.7 * apart
    logits, counts = rng.normal(size=(1, 3)), np.array([0, 1, 0])
    bag = BagBatch(torch.tensor(counts[None] / 1.0), 1, task="multiclass")
    np.testing.assert_allclose(CountPosterior().posterior(torch.tensor(logits), bag), counts[None])


def test_the_joint_posterior_meets_all_counts(rng, generator):
    sizes = torch.tensor([1, 7, 1024])
    logits = 2 * torch.randn(2, int(sizes.sum()), 10, generator=generator, dtype=torch.double)
    labels = torch.distributions.Categorical(logits=logits).sample()
    batch = BagBatch(torch.zeros(2, 3, 10).double(), sizes, task="multiclass")
    shares = batch.mean(torch.nn.functional.one_hot(labels, 10).double())
    batch = BagBatch(shares, sizes, task="multiclass")
    posterior = tilted_posterior(logits, batch)
    torch.testing.assert_close(posterior.sum(dim=-1), torch.ones(2, 1032).double())
    torch.testing.assert_close(batch.mean(posterior), shares, atol=2e-3, rtol=0)
