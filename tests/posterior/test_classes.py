"""The joint posterior of several classes, against all labelings of small bags."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch.nn.functional import one_hot

from unbag import BagBatch, Bags
from unbag.posterior import bag_posterior
from unbag.posterior.classes import class_posterior, exact_classes, tilted_classes


def enumerated(scores, counts):
    """Mean one-hot labels over all labelings with these counts, and their probability."""
    n, n_classes = scores.shape
    found, total = np.zeros_like(scores), 0.0
    for labels in product(range(n_classes), repeat=n):
        if (np.bincount(labels, minlength=n_classes) == counts).all():
            mass = scores[np.arange(n), labels].prod()
            found[np.arange(n), labels] += mass
            total += mass
    return found / total, total


def random_batch(generator, sizes, n_classes, spread=1.0, leading=()):
    """Logits, and the counts of labels drawn from them."""
    n = sum(sizes)
    logits = spread * torch.randn(*leading, n, n_classes, generator=generator).double()
    noise = torch.rand(*leading, n, n_classes, generator=generator).double().log().neg().log()
    labels = one_hot((logits - noise).argmax(-1), n_classes).double()
    empty = torch.zeros(*leading, len(sizes), n_classes).double()
    layout = BagBatch(empty, torch.tensor(sizes), task="multiclass")
    return logits, BagBatch(layout.mean(labels), torch.tensor(sizes), task="multiclass")


@pytest.mark.parametrize("spread", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("counts", [(3, 2, 2), (7, 0, 0), (0, 3, 4), (1, 2, 1, 3), (5,)])
def test_exact_is_the_mean_over_all_labelings(rng, spread, counts):
    counts = np.array(counts)
    scores = softmax(spread * rng.normal(size=(counts.sum(), len(counts))), axis=1)
    np.testing.assert_allclose(exact_classes(scores, counts), enumerated(scores, counts)[0])


def test_it_is_the_gradient_of_the_log_likelihood_of_the_counts(rng):
    """The derivative by a logit is the posterior minus the class's own probability."""
    counts, step = np.array([3, 1, 2]), 1e-5
    logits = rng.normal(size=(6, 3))
    slopes = np.empty_like(logits)
    for place in np.ndindex(logits.shape):
        ends = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[place] += sign * step
            ends.append(np.log(enumerated(softmax(moved, axis=1), counts)[1]))
        slopes[place] = (ends[0] - ends[1]) / (2 * step)
    scores = softmax(logits, axis=1)
    np.testing.assert_allclose(exact_classes(scores, counts) - scores, slopes, atol=1e-8)


def test_unequal_bags_and_leading_axes_are_exact_each(generator):
    logits, batch = random_batch(generator, [1, 4, 6], 3, leading=(2,))
    found = class_posterior(logits, batch).numpy()
    scores, counts = logits.softmax(-1).numpy(), (batch.bag_sizes * batch.targets).numpy()
    for trial, (start, end, bag) in product(range(2), [(0, 1, 0), (1, 5, 1), (5, 11, 2)]):
        wanted, _ = enumerated(scores[trial, start:end], np.rint(counts[trial, bag]))
        np.testing.assert_allclose(found[trial, start:end], wanted, atol=1e-9)


def test_the_comparison_rejects_the_tilted_law(generator):
    logits, batch = random_batch(generator, [6], 3)
    wanted, _ = enumerated(logits.softmax(-1).numpy(), np.rint(6 * batch.targets.numpy()[0]))
    assert np.abs(tilted_classes(logits, batch).numpy() - wanted).max() > 1e-3


def test_tilted_comes_near_exact_as_bags_grow(generator):
    gaps = []
    for size in (6, 24, 96):
        logits, batch = random_batch(generator, [size], 3)
        counts = torch.round(size * batch.targets[0]).long().numpy()
        exact = exact_classes(logits.softmax(-1).numpy(), counts)
        gaps.append(np.abs(tilted_classes(logits, batch).numpy() - exact).mean())
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]


@pytest.mark.parametrize("n_classes", [2, 10, 100])
@pytest.mark.parametrize("spread", [0.5, 40.0])
def test_counts_are_met_up_to_bags_of_1024(generator, n_classes, spread):
    logits, batch = random_batch(generator, [1, 7, 1024], n_classes, spread)
    for law in (tilted_classes, class_posterior):
        found = law(logits, batch)
        torch.testing.assert_close(batch.mean(found), batch.targets, atol=1e-6, rtol=0)
        torch.testing.assert_close(found.sum(-1), torch.ones(1032).double())


def test_a_loose_tolerance_is_kept(generator):
    logits, batch = random_batch(generator, [256, 256], 10, 3.0)
    batch = BagBatch(batch.proportions, 256, task="multiclass")
    found = tilted_classes(logits, batch, tolerance=1e-3)
    assert (batch.mean(found) - batch.targets).abs().max() <= 1e-3


def test_certain_scores_against_the_counts_stay_finite():
    logits = torch.tensor([[1e4, -1e4, 0.0], [1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]])
    batch = BagBatch(torch.tensor([[0.0, 1 / 3, 2 / 3]]), 3, task="multiclass")
    found = class_posterior(logits, batch)
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found.sum(0), torch.tensor([0.0, 1.0, 2.0]).double())


def bags_of_classes(rng, size, n_classes):
    scores = softmax(rng.normal(size=(3 * size, n_classes)), axis=1)
    ids = np.repeat(np.arange(3), size)
    shares = np.stack([rng.multinomial(size, np.full(n_classes, 1 / n_classes)) for _ in range(3)])
    return scores, Bags.from_arrays(scores, bags=ids, y=(shares / size)[ids])


def test_two_classes_are_one_label(rng):
    scores, bags = bags_of_classes(rng, 12, 2)
    batch = BagBatch(torch.as_tensor(bags.proportions), 12, task="multiclass")
    found = class_posterior(torch.as_tensor(scores).log(), batch).numpy()
    np.testing.assert_allclose(found, bag_posterior(scores, bags), atol=1e-8)


def test_the_public_function_is_exact_in_small_bags(rng):
    scores, bags = bags_of_classes(rng, 6, 4)
    found = bag_posterior(scores, bags)
    wanted, _ = enumerated(scores[:6], np.rint(6 * bags.proportions[0]))
    np.testing.assert_allclose(found[:6], wanted, atol=1e-9)
