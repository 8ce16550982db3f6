"""Tilting: expected counts are the known ones, and near the exact posterior."""

from itertools import product

import torch

from unbag.images.tilting import BagCounts, tilt


def random_bags(generator, sizes, n_classes):
    bag_of = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    labels = torch.randint(n_classes, (len(bag_of),), generator=generator)
    counts = torch.zeros(len(sizes), n_classes).index_put_(
        (bag_of, labels), torch.ones(len(bag_of)), accumulate=True
    )
    return BagCounts(bag_of, counts), labels


def exact_posterior(probabilities, counts):
    """By all labelings of one bag."""
    n, n_classes = probabilities.shape
    total = torch.zeros(n, n_classes)
    for labels in product(range(n_classes), repeat=n):
        if (torch.bincount(torch.tensor(labels), minlength=n_classes) == counts).all():
            weight = probabilities[range(n), labels].prod()
            total[range(n), labels] += weight
    return total / total.sum(dim=1, keepdim=True)


def test_expected_counts_are_the_known_ones(generator):
    bags, _ = random_bags(generator, [3, 40, 200], 5)
    scores = torch.randn(len(bags.bag_of), 5, generator=generator)
    posterior = tilt(scores, bags, n_iterations=200)
    torch.testing.assert_close(bags.sums(posterior), bags.counts, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(posterior.sum(dim=1), torch.ones(len(posterior)))


def test_it_is_near_the_exact_posterior(generator):
    bags, _ = random_bags(generator, [8], 3)
    scores = torch.randn(8, 3, generator=generator).softmax(dim=1)
    exact = exact_posterior(scores, bags.counts[0])
    tilted = tilt(scores.log(), bags, n_iterations=200)
    far = (scores - exact).abs().max()
    assert (tilted - exact).abs().max() < min(0.1, far)


def test_bags_do_not_touch_each_other_and_parts_are_the_same(generator):
    bags, _ = random_bags(generator, [5, 9, 4], 3)
    scores = torch.randn(18, 3, generator=generator)
    whole = tilt(scores, bags)
    rows = torch.cat([torch.arange(14, 18), torch.arange(5)])
    part = bags.take(torch.tensor([2, 0]), rows)
    torch.testing.assert_close(tilt(scores[rows], part), whole[rows])
