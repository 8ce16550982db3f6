"""Posteriors of labels given their bag's count, against brute force over all labelings."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, softmax

from unbag import Bags
from unbag.errors import BagDataError
from unbag.posterior import bag_posterior
from unbag.posterior.labels import exact_posterior, tilt_to_counts, tilted_posterior


def enumerated(logits, count):
    """Mean labels over all labelings with that count, each weighted by its probability."""
    labelings = np.array(list(product((0, 1), repeat=len(logits))))
    labelings = labelings[labelings.sum(axis=1) == count]
    log_mass = labelings @ logits
    return np.average(labelings, axis=0, weights=np.exp(log_mass - log_mass.max()))


@pytest.mark.parametrize("spread", [0.1, 1.0, 6.0, 20.0])
def test_exact_is_the_mean_over_all_labelings(rng, spread):
    """A spread of 20 has scores that differ by eight orders of magnitude."""
    sizes = np.arange(1, 10)
    logits = np.clip(spread * rng.normal(size=sizes.sum()), -30, 30)
    for counts in (rng.integers(0, sizes + 1), np.zeros(9), sizes):
        found = np.split(exact_posterior(logits, counts, sizes), np.cumsum(sizes)[:-1])
        parts = np.split(logits, np.cumsum(sizes)[:-1])
        for own_logits, count, own in zip(parts, counts, found, strict=True):
            np.testing.assert_allclose(own, enumerated(own_logits, count), atol=1e-9)


def test_the_comparison_rejects_the_tilted_law(rng):
    logits = rng.normal(size=6)
    found = tilted_posterior(logits, [2], [6])
    assert np.abs(found - enumerated(logits, 2)).max() > 1e-3


@pytest.mark.parametrize("law", [exact_posterior, tilted_posterior])
def test_posteriors_add_up_to_the_count(law, rng):
    sizes = np.array([3, 400, 900, 17])
    counts = np.array([1, 399, 2, 17])
    logits = np.clip(10 * rng.normal(size=sizes.sum()), -20, 20)
    sums = np.add.reduceat(law(logits, counts, sizes), np.cumsum(sizes) - sizes)
    np.testing.assert_allclose(sums, counts, rtol=1e-6)


def test_tilted_comes_near_exact_as_bags_grow(rng):
    gaps = []
    for size in (10, 100, 1000):
        logits = rng.normal(size=size)
        counts = [round(0.4 * size)]
        gaps.append(
            np.abs(
                exact_posterior(logits, counts, [size]) - tilted_posterior(logits, counts, [size])
            ).max()
        )
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]
    assert gaps[2] < 1e-3


def test_tilt_finds_counts_far_from_the_expected(rng):
    sizes, counts = np.array([50, 2]), np.array([49.999, 1e-6])
    logits = np.concatenate([rng.normal(-20, 3, 50), [15.0, -15.0]])
    tilt = tilt_to_counts(logits, counts, sizes)
    found = np.add.reduceat(expit(logits + np.repeat(tilt, sizes)), [0, 50])
    np.testing.assert_allclose(found, counts, rtol=1e-2)


def test_two_classes_are_one_label(rng):
    scores = rng.uniform(size=20)
    y = np.repeat([0.3, 0.8], 10)
    ids = np.repeat([0, 1], 10)
    one = bag_posterior(scores, Bags.from_arrays(scores, bags=ids, y=y))
    pair = np.column_stack([1 - scores, scores])
    bags = Bags.from_arrays(scores, bags=ids, y=np.column_stack([1 - y, y]))
    np.testing.assert_allclose(bag_posterior(pair, bags)[:, 1], one)


def test_rows_come_in_any_order(rng):
    scores, ids = rng.uniform(size=60), np.repeat(np.arange(6), 10)
    y = np.repeat(rng.integers(0, 11, 6) / 10, 10)
    order = rng.permutation(60)
    wanted = bag_posterior(scores, Bags.from_arrays(scores, bags=ids, y=y))
    found = bag_posterior(scores[order], Bags.from_arrays(scores, bags=ids[order], y=y[order]))
    np.testing.assert_allclose(found, wanted[order])


def test_posteriors_are_calibrated(rng):
    """Given the count, the mean label of instances with like posteriors is the posterior."""
    scores = rng.uniform(size=(20_000, 5)) ** 2
    labels = rng.uniform(size=scores.shape) < scores
    ids = np.repeat(np.arange(20_000), 5)
    bags = Bags.from_arrays(ids, bags=ids, y=np.repeat(labels.mean(axis=1), 5))
    found, labels = bag_posterior(scores.ravel(), bags), labels.ravel()
    for low in np.arange(0.05, 0.95, 0.1):
        own = (found > low) & (found < low + 0.1)
        error = 0.5 / np.sqrt(own.sum())
        assert abs(labels[own].mean() - found[own].mean()) < 4 * error


@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_leaves_the_scores_when_it_drowns_the_count(n_classes, rng):
    scores = softmax(rng.normal(size=(40, n_classes)), axis=1)
    y = np.repeat(np.array([[0.1, 0.9, 0.0], [0.5, 0.2, 0.3]])[:, :n_classes], 20, axis=0)
    y = y if n_classes == 3 else np.column_stack([1 - y[:, 1], y[:, 1]])
    for variance, gap in ((100.0, 0.01), (1e-12, 1.0)):
        bags = Bags(
            scores,
            np.arange(40),
            np.array([20, 20]),
            y[[0, 20]],
            [0, 1],
            np.full(2, variance),
            "multiclass",
        )
        found = bag_posterior(scores, bags)
        assert np.abs(found - scores).max() < gap
    np.testing.assert_allclose(np.add.reduceat(found, [0, 20]), 20 * y[[0, 20]], atol=1e-3)


@pytest.mark.parametrize(
    ("scores", "words"), [(np.full(3, 0.5), "shape"), (np.full(4, 1.5), "predict_proba")]
)
def test_bad_arguments_are_named(scores, words):
    bags = Bags.from_arrays(np.zeros(4), bags=[0, 0, 1, 1], y=[0.5, 0.5, 1, 1])
    with pytest.raises(BagDataError, match=words):
        bag_posterior(scores, bags)
