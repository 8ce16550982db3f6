"""Comparing two classifiers, and privacy's noise."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from unbag.bags import Bags, make_bags
from unbag.evaluation import (
    compare_models,
    estimate_risk,
    pairwise_value,
    privacy_noise,
    residual_moments,
)


def two_classifiers(rng, n_instances, *, gap):
    """Labels and two decisions that agree mostly; the first errs by `gap` less than the second."""
    labels = (rng.random(n_instances) < 0.5).astype(float)
    draw = rng.random(n_instances)
    first = np.where(draw < 0.1, 1 - labels, labels)
    wrong = (draw < 0.08) | (draw > 0.98 - gap)
    return labels, first, np.where(wrong, 1 - labels, labels)


def test_is_the_difference_of_the_pairwise_risks(rng):
    labels, first, second = two_classifiers(rng, 600, gap=0.05)
    bags = make_bags(np.zeros((600, 1)), labels, bag_size=7, seed=0)
    found = compare_models(first, second, bags)
    risks = [pairwise_value(bags.mean(s) - bags.proportions, bags.sizes) for s in (first, second)]
    assert found.difference.value == pytest.approx(risks[0] - risks[1], abs=1e-9)


@pytest.mark.parametrize("bag_size", [1, 5, 40])
def test_paired_intervals_cover_and_are_shorter(rng, bag_size):
    hits, widths, apart = 0, [], []
    for _ in range(400):
        labels, first, second = two_classifiers(rng, 60 * bag_size, gap=0.05)
        bags = Bags.from_arrays(
            np.zeros((60 * bag_size, 1)),
            offsets=np.arange(0, 60 * bag_size + 1, bag_size),
            counts=labels.reshape(60, bag_size).sum(axis=1),
        )
        found = compare_models(first, second, bags)
        hits += found.difference.low <= -0.05 <= found.difference.high
        widths.append(found.difference.high - found.difference.low)
        apart.append(sum(estimate_risk(s, bags).standard_error ** 2 for s in (first, second)))
    assert abs(hits / 400 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)
    assert np.mean(widths) < 4 * np.mean(np.sqrt(apart))


def scatter_and_error(rng, sizes, n_draws=300):
    """Deviation of the difference over draws, and the standard error stated.

    Two models differ where labels are a coin's, at every tenth instance; the others are certain.
    """
    found, n = [], int(sum(sizes))
    for _ in range(n_draws):
        labels, unsure = (rng.random(n) < 0.5).astype(float), rng.random(n) < 0.1
        guess = rng.random(n)
        f, g = (np.where(unsure, scores, labels) for scores in (guess, 1 - guess))
        offsets = np.append(0, np.cumsum(sizes))
        counts = np.add.reduceat(labels, offsets[:-1])
        bags = Bags.from_arrays(np.zeros((n, 1)), offsets=offsets, counts=counts)
        found.append(compare_models(f, g, bags, loss="square").difference)
    errors = np.array([one.standard_error for one in found])
    return np.std([one.value for one in found]), np.sqrt(np.mean(errors**2))


@pytest.mark.parametrize("sizes", [[20] * 30, [1] * 60 + [400] * 4], ids=["equal", "unequal"])
def test_the_standard_error_is_the_scatter_over_draws(rng, sizes):
    scatter, error = scatter_and_error(rng, sizes)
    assert error / scatter == pytest.approx(1, abs=4 / np.sqrt(2 * 300))


def test_averages_over_instances_alone_understate_the_error_of_unequal_bags(rng, monkeypatch):
    """The check above rejects a variance without what instances of small bags do by themselves."""
    monkeypatch.setattr(residual_moments, "_mean_square", lambda *_: 0.0)
    scatter, error = scatter_and_error(rng, [1] * 60 + [400] * 4)
    assert error / scatter < 1 - 4 / np.sqrt(2 * 300)


@pytest.mark.parametrize("loss", ["square", "zero_one"])
def test_the_standard_error_where_one_model_is_much_better(rng, loss):
    """Residuals then go with the gap of the predictions, whose products scatter more."""
    labels = (rng.random((400, 600)) < 0.5).astype(float)
    found = []
    for own in labels:
        bags = Bags.from_arrays(
            np.zeros((600, 1)), offsets=np.arange(0, 601, 20), counts=own.reshape(30, 20).sum(1)
        )
        good, bad = (np.where(rng.random(600) < e, 1 - own, own) for e in (0.02, 0.5))
        found.append(compare_models(good, bad, bags, loss=loss).difference)
    errors = np.array([one.standard_error for one in found])
    scatter = np.std([one.value for one in found])
    assert np.sqrt(np.mean(errors**2)) / scatter == pytest.approx(1, abs=4 / np.sqrt(2 * 400))


@pytest.mark.parametrize("bag_size", [1, 2, 5])
def test_it_covers_where_both_are_overconfident(rng, bag_size):
    """Two that decide alike, one surer than the other; both wrong far more often than they say."""
    n_bags, hits = 200, 0
    brier = [0.8 * (1 - sure) ** 2 + 0.2 * sure**2 for sure in (0.999, 0.9)]
    for _ in range(300):
        labels = (rng.random(n_bags * bag_size) < 0.5).astype(float)
        right = np.where(rng.random(len(labels)) < 0.8, labels, 1 - labels) > 0
        bags = Bags.from_arrays(
            np.zeros((len(labels), 1)),
            offsets=np.arange(0, len(labels) + 1, bag_size),
            counts=labels.reshape(n_bags, bag_size).sum(axis=1),
        )
        pair = (np.where(right, sure, 1 - sure) for sure in (0.999, 0.9))
        found = compare_models(*pair, bags, loss="square")
        hits += found.difference.low <= brier[0] - brier[1] <= found.difference.high
    assert hits / 300 > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.parametrize("bag_size", [1, 5])
def test_it_covers_where_several_labels_are_wrong_together(rng, bag_size):
    """Five labels with a common cause, and two models that each score them alike."""
    n_bags, n_labels, found = 150, 5, []
    offsets = np.arange(0, n_bags * bag_size + 1, bag_size)
    for _ in range(300):
        x, z = rng.normal(size=(2, n_bags * bag_size, 1))
        labels = x + z + 0.1 * rng.normal(size=(len(x), n_labels)) > 0
        shares = labels.reshape(n_bags, bag_size, n_labels).mean(axis=1)
        bags = Bags.from_arrays(x, offsets=offsets, proportions=shares, task="multilabel")
        noisy = -x / 2 + rng.normal(size=x.shape)
        pair = (np.repeat(special.expit(logits), n_labels, axis=1) for logits in (x, noisy))
        found.append(compare_models(*pair, bags, loss="square").difference)
    truth = np.mean([one.value for one in found])
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)


def test_noise_of_the_mean_is_part_of_the_interval(rng):
    """A score and the same one shifted: only the share of positives, which is noisy, decides."""
    n_bags, bag_size, variance, hits = 60, 50, 0.01, 0
    for _ in range(300):
        scores = rng.uniform(0.2, 0.8, size=n_bags * bag_size)
        shares = (rng.random(len(scores)) < scores).reshape(n_bags, bag_size).mean(axis=1)
        bags = Bags.from_arrays(
            np.zeros((len(scores), 1)),
            offsets=np.arange(0, len(scores) + 1, bag_size),
            proportions=shares + np.sqrt(variance) * rng.normal(size=n_bags),
            noise_variance=variance,
        )
        found = compare_models(scores, scores + 0.05, bags, loss="square")
        hits += found.difference.low <= -(0.05**2) <= found.difference.high
    assert abs(hits / 300 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)


def test_reads_as_a_sentence(rng):
    labels, first, second = two_classifiers(rng, 40_000, gap=0.05)
    ids = np.arange(40_000) // 20
    y = np.repeat(labels.reshape(-1, 20).mean(axis=1), 20)
    found = compare_models(first, second, np.zeros((40_000, 1)), y, bags=ids, names=("net", "tree"))
    assert str(found).startswith("net is better than tree by")
    swapped = compare_models(second, first, np.zeros((40_000, 1)), y, bags=ids)
    assert swapped.difference.value == pytest.approx(-found.difference.value)
    same = compare_models(first, first, np.zeros((40_000, 1)), y, bags=ids)
    assert (same.difference.value, same.p_value) == (0, 1)


@pytest.mark.parametrize("mechanism", ["laplace", "geometric", "gaussian"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_privacy_noise_against_draws(rng, mechanism, epsilon):
    delta = 1e-5 if mechanism == "gaussian" else None
    noise = privacy_noise(mechanism, np.array([10, 100]), epsilon=epsilon, delta=delta)
    ratio = np.exp(-epsilon)
    draws = {
        "laplace": lambda n: rng.laplace(scale=1 / epsilon, size=n),
        "geometric": lambda n: rng.geometric(1 - ratio, n) - rng.geometric(1 - ratio, n),
        "gaussian": lambda n: rng.normal(scale=noise.count_variance**0.5, size=n),
    }[mechanism](400_000)
    assert draws.var() == pytest.approx(noise.count_variance, rel=0.02)
    excess = (draws**4).mean() / draws.var() ** 2 - 3
    assert excess == pytest.approx(noise.kurtosis, abs=0.05 + 0.1 * noise.kurtosis)
    assert noise.variance[0] / noise.variance[1] == pytest.approx(100)


def test_gaussian_noise_is_calibrated():
    """The privacy loss exceeds epsilon with chance delta in the sense of the definition."""
    sigma = privacy_noise("gaussian", 1, epsilon=2.0, delta=1e-3).count_variance ** 0.5
    points = np.linspace(-60, 60, 400_001)
    excess = stats.norm.pdf(points, 1, sigma) - np.exp(2.0) * stats.norm.pdf(points, 0, sigma)
    assert integrate.trapezoid(np.maximum(excess, 0), points) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("sizes", [-5, 0, [10, np.nan]])
def test_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(ValueError, match="sizes must be"):
        privacy_noise("laplace", sizes, epsilon=1.0)


def test_bad_privacy_parameters_are_named():
    with pytest.raises(ValueError, match="delta"):
        privacy_noise("laplace", 10, epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match="delta"):
        privacy_noise("gaussian", 10, epsilon=1.0)
    with pytest.raises(ValueError, match="mechanism"):
        privacy_noise("uniform", 10, epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        privacy_noise("laplace", 10, epsilon=0.0)


def test_a_model_is_no_better_than_itself(rng):
    labels, first, _ = two_classifiers(rng, 600, gap=0.05)
    bags = make_bags(np.zeros((600, 1)), labels, bag_size=10, seed=0)
    assert str(compare_models(first, first, bags)) == "A and B do not differ (60 bags)"
