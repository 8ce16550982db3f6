"""The posterior of the labels given a count, and the losses it is put into."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy import special

from unbag import BagBatch
from unbag.posterior.classes import class_posterior
from unbag.rules import CountLikelihood, CountPosterior

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


def test_three_classes_have_their_joint_posterior(generator):
    """Given all counts at once; one class against the rest forgets what the others say."""
    logits = torch.randn(6, 3, generator=generator, dtype=torch.double)
    shares = torch.tensor([[1 / 2, 1 / 3, 1 / 6]], dtype=torch.double)
    bag = BagBatch(shares, 6, task="multiclass")
    found = CountPosterior().posterior(logits, bag)
    torch.testing.assert_close(found, class_posterior(logits, bag))
    apart = BagBatch(shares, 6, task="multilabel")
    against_rest = CountPosterior().posterior(logits.softmax(-1).logit(), apart)
    assert (found - against_rest).abs().max() > 0.01
