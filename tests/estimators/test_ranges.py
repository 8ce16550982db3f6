"""Bags of which only a range of counts is known: "under 5", "10 to 20 %"."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import unbag
from unbag import BagEMClassifier, BagLogisticClassifier, Bags, bag_posterior
from unbag.errors import BagDataError
from unbag.estimators.count_regression import BagCounts, shift_to_counts
from unbag.posterior.posterior import EXACT_UP_TO


def world(rng, *, n_bags=150, size=20):
    X = rng.normal(size=(n_bags * size, 3))
    labels = rng.random(len(X)) < expit(2 * X[:, 0] - 1)
    ids = np.repeat(np.arange(n_bags), size)
    return X, labels, ids, labels.reshape(n_bags, size).sum(axis=1)


def coarse(X, ids, counts, *, width=5):
    """Bags of which only the decile, or the like, of the count is known."""
    low = counts // width * width
    return Bags.from_arrays(X, bags=ids, counts=low, upper=np.minimum(low + width - 1, 20))


def test_ranges_are_read_in_every_form():
    X, ids = np.zeros((12, 1)), np.repeat(["a", "b"], 6)
    wanted = [[0, 2], [3, 4]]
    for low, high in (
        ({"counts": [0, 3]}, [2, 4]),
        ({"counts": {"b": 3, "a": 0}}, {"a": 2, "b": 4}),
        ({"proportions": [0.0, 0.45]}, [0.4, 0.7]),
        ({"y": np.repeat([0.0, 0.5], 6)}, np.repeat([1 / 3, 2 / 3], 6)),
    ):
        bags = Bags.from_arrays(X, bags=ids, **low, upper=high)
        np.testing.assert_array_equal(bags.ranges, wanted)
        np.testing.assert_allclose(bags.proportions, [1 / 6, 3.5 / 6])
    np.testing.assert_array_equal(bags.take(np.array([1])).ranges, wanted[1:])


def test_the_posterior_is_that_of_enumeration(rng):
    scores = rng.uniform(0.1, 0.9, size=9)
    bags = Bags.from_arrays(np.zeros((9, 1)), offsets=[0, 4, 9], counts=[1, 0], upper=[3, 2])
    for part, (low, high) in zip(np.split(np.arange(9), [4]), bags.ranges, strict=True):
        labels = np.array(list(product([0, 1], repeat=len(part))))
        chance = np.where(labels, scores[part], 1 - scores[part]).prod(axis=1)
        chance *= (labels.sum(axis=1) >= low) & (labels.sum(axis=1) <= high)
        wanted = chance @ labels / chance.sum()
        np.testing.assert_allclose(bag_posterior(scores, bags)[part], wanted)
    everything = Bags.from_arrays(np.zeros((9, 1)), offsets=[0, 4, 9], counts=[0, 0], upper=[4, 5])
    np.testing.assert_allclose(bag_posterior(scores, everything), scores)
    impossible = Bags.from_arrays(np.zeros((9, 1)), offsets=[0, 4, 9], counts=[3, 0], upper=[4, 0])
    assert np.isfinite(bag_posterior(np.full(9, 1e-9), impossible)).all()


def counts_of(low, high, scores, n_bags=2):
    sizes = np.full(n_bags, len(scores) // n_bags)
    ranges = np.array([low, high], dtype=float).T
    starts = np.cumsum(sizes) - sizes
    return BagCounts(ranges.mean(axis=1), sizes, starts, np.zeros(n_bags), ranges=ranges)


def test_likelihood_and_expected_count_are_those_of_a_truncated_normal(rng):
    scores = rng.uniform(0.1, 0.9, size=40)
    data = counts_of([2, 17], [9, 19], scores)
    mean, variance = data.sum(scores), data.variance(scores, 0.0)
    law = stats.norm(mean, np.sqrt(variance))
    mass = law.cdf([9.5, 19.5]) - law.cdf([1.5, 16.5])
    np.testing.assert_allclose(data.minus_log(scores), -np.log(mass))
    ends = (np.array([1.5, 16.5]) - mean) / np.sqrt(variance)
    last = (np.array([9.5, 19.5]) - mean) / np.sqrt(variance)
    wanted = stats.truncnorm(ends, last, mean, np.sqrt(variance)).mean()
    np.testing.assert_allclose(data.expected(scores, variance), np.clip(wanted, [2, 17], [9, 19]))
    far = counts_of([20, 20], [20, 20], np.full(40, 1e-4))
    assert np.isfinite(far.minus_log(np.full(40, 1e-4))).all()


def test_the_gradient_is_that_of_the_likelihood(rng):
    """By the mean of a count, its variance held: what Fisher scoring needs."""
    scores = rng.uniform(0.2, 0.8, size=40)
    data = counts_of([2, 7], [9, 12], scores)
    variance = data.variance(scores, 0.0)

    def minus_log(shift):
        return -data._inside(scores + shift / 20, variance)[2]

    slope = (minus_log(1e-5) - minus_log(-1e-5)) / 2e-5
    gaps = data.expected(scores, variance) - data.sum(scores)
    np.testing.assert_allclose(-slope, gaps / variance, rtol=1e-6)


def test_a_range_of_one_count_is_nearly_the_count(rng):
    X, _, ids, counts = world(rng)
    exact = Bags.from_arrays(X, bags=ids, counts=counts)
    narrow = Bags.from_arrays(X, bags=ids, counts=counts, upper=counts)
    first, second = (BagLogisticClassifier(penalties=[3.0]).fit_bags(b) for b in (exact, narrow))
    np.testing.assert_allclose(first.coef_, second.coef_, atol=0.05)


@pytest.mark.parametrize(
    "model",
    [
        BagLogisticClassifier(random_state=0),
        BagEMClassifier(LogisticRegression(), random_state=0, n_rounds=4),
    ],
    ids=lambda model: type(model).__name__,
)
def test_single_labels_are_learned_from_ranges(model, rng):
    X, labels, ids, counts = world(rng, n_bags=300)
    true = expit(2 * X[:, 0] - 1)
    fitted = model.fit_bags(coarse(X, ids, counts))
    probabilities = fitted.predict_proba(X)[:, 1]
    assert fitted.score(X, labels.astype(int)) > 0.75  # the best there is has about 0.79
    assert abs(probabilities.mean() - true.mean()) < 0.03
    assert np.corrcoef(probabilities, true)[0, 1] > 0.95


def test_ranges_beat_their_middles_where_labels_are_rare(rng):
    """Counts below five are mostly none or one, and their middle is two."""
    X, _, ids, _ = world(rng, n_bags=300)
    labels = rng.random(len(X)) < expit(1.5 * X[:, 0] - 4)
    counts = labels.reshape(300, 20).sum(axis=1)
    low, high = np.where(counts < 5, 0, counts), np.where(counts < 5, 4, counts)
    hidden = np.where(rng.random(300) < 0.5, True, False)  # half of the bags are not censored
    low, high = np.where(hidden, low, counts), np.where(hidden, high, counts)
    bags = Bags.from_arrays(X, bags=ids, counts=low, upper=high)
    fitted = BagLogisticClassifier(penalties=[1.0]).fit_bags(bags)
    middles = Bags.from_arrays(X, bags=ids, counts=np.round((low + high) / 2))
    naive = BagLogisticClassifier(penalties=[1.0]).fit_bags(middles)
    gaps = [abs(m.predict_proba(X)[:, 1].mean() - labels.mean()) for m in (fitted, naive)]
    assert gaps[0] < 0.01 < gaps[1]


def test_the_shift_is_that_of_expected_counts(rng):
    logits = rng.normal(size=2000) - 2
    labels = rng.random(2000) < expit(logits)
    counts = labels.reshape(100, 20).sum(axis=1)
    data = counts_of(np.where(counts < 5, 0, counts), np.where(counts < 5, 4, counts), logits, 100)
    wrong = shift_to_counts(logits, BagCounts(data.counts, data.sizes, data.starts, data.noise))
    assert abs(shift_to_counts(logits, data)) < 0.15 < abs(wrong)


def good():
    return {"X": np.zeros((12, 1)), "bags": np.repeat([0, 1], 6), "counts": [0, 3], "upper": [2, 4]}


MALFORMED = {
    "an upper end below the lower": ({"upper": [2, 2]}, "bag 1 of 6 instances has the range"),
    "no whole count inside": (
        {"counts": None, "proportions": [0.1, 0.2], "upper": [0.15, 0.3]},
        "leave a whole count",
    ),
    "more than the bag has": ({"upper": [2, 7]}, "between 0 and the bag's size"),
    "a negative count": ({"counts": [-1, 3]}, "between 0 and the bag's size"),
    "a share above one": (
        {"counts": None, "proportions": [0.1, 0.2], "upper": [0.5, 1.2]},
        "in \\[0, 1\\]",
    ),
    "NaN": ({"counts": None, "proportions": [0.1, 0.2], "upper": [0.5, np.nan]}, "finite"),
    "too few": ({"upper": [2]}, "upper must hold one value per bag"),
    "a bag without an upper end": ({"upper": {0: 2}}, "bag 1 is missing"),
    "words": ({"upper": ["few", "many"]}, "upper must hold numbers"),
    "noise beside ranges": ({"noise_variance": 1.0}, "no noise"),
    "amounts": ({"task": "amount"}, "got task='amount'"),
    "several classes": (
        {"counts": None, "proportions": [[0.5, 0.5]] * 2, "upper": [[0.5, 0.5]] * 2},
        "one label",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_ranges_are_refused_in_words(case):
    change, words = MALFORMED[case]
    with pytest.raises(BagDataError, match=words):
        Bags.from_arrays(**good() | change)


REFUSING = {
    "ridge": lambda bags: unbag.BagRidgeClassifier().fit_bags(bags),
    "net": lambda bags: unbag.BagClassifier(max_epochs=1).fit_bags(bags),
    "boosting": lambda bags: unbag.BagBoostingClassifier().fit_bags(bags),
    "boosting by counts": lambda bags: unbag.BagBoostingClassifier(
        rule="count_likelihood"
    ).fit_bags(bags),
    "stack": lambda bags: unbag.BagStackingClassifier(quick=True).fit_bags(bags),
    "effects": lambda bags: BagLogisticClassifier(bag_effects=True).fit_bags(bags),
    "evaluation": lambda bags: unbag.evaluate(np.full(len(bags.X), 0.5), bags),
    "natural": lambda bags: unbag.evaluate(np.full(len(bags.X), 0.5), bags, grouping="natural"),
    "risk": lambda bags: unbag.estimate_risk(np.full(len(bags.X), 0.5), bags),
    "check": unbag.check_bags,
    "process": lambda bags: unbag.BagGaussianProcessClassifier().fit_bags(bags),
    "events": lambda bags: unbag.BagPoissonRegressor().fit_bags(bags),
    "boosted events": lambda bags: unbag.BagBoostingRegressor(loss="poisson").fit_bags(bags),
    "images": lambda bags: unbag.BagImageClassifier(max_epochs=1).fit_bags(
        replace(bags, X=bags.X.reshape(-1, 3, 1, 1))
    ),
}


@pytest.mark.parametrize("case", REFUSING)
def test_what_needs_counts_refuses_ranges(case, rng):
    X, _, ids, counts = world(rng, n_bags=40)
    with pytest.raises(BagDataError, match="ranges"):
        REFUSING[case](coarse(X, ids, counts))


def test_labels_that_are_unknown_are_not_one_half(rng):
    """Bags of one: a known label has the range of one number, a hidden one of both."""
    X, labels, _, _ = world(rng, n_bags=60)
    hidden = rng.random(len(X)) < 0.7
    low, high = np.where(hidden, 0, labels), np.where(hidden, 1, labels)
    bags = Bags.from_arrays(X, bags=np.arange(len(X)), counts=low, upper=high)
    em = BagEMClassifier(LogisticRegression(), random_state=0).fit_bags(bags)
    known = LogisticRegression().fit(X[~hidden], labels[~hidden])
    loss = [np.mean((m.predict_proba(X[hidden])[:, 1] - labels[hidden]) ** 2) for m in (em, known)]
    assert loss[0] < loss[1] + 0.02


def test_the_posterior_of_a_large_range_is_nearly_that_of_its_exact_law(rng):
    """The second bag is one instance too large for the exact law of its count."""
    part = expit(rng.normal(size=EXACT_UP_TO) - 1)
    scores, n = np.concatenate([part, part, [0.5]]), EXACT_UP_TO
    ends = int(part.sum()) + np.array([5, 60])
    bags = Bags.from_arrays(
        np.zeros((2 * n + 1, 1)), offsets=[0, n, 2 * n + 1], counts=ends[[0, 0]], upper=ends[[1, 1]]
    )
    exact, gaussian = np.split(bag_posterior(scores, bags), [n])
    np.testing.assert_allclose(gaussian[:-1], exact, atol=2e-3)
    assert exact.sum() > part.sum() + 5
