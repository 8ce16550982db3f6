"""Learning curves over bags: nested parts, paired risks, a projection that owns its uncertainty."""

import numpy as np
import pytest

import unbag
from unbag.errors import BagDataError
from unbag.evaluation.learning_curve import projected_gain

N_FEATURES = 12


def draw(rng, n_bags, bag_size=10):
    X = rng.normal(size=(n_bags * bag_size, N_FEATURES))
    labels = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0.2).astype(float)
    ids = np.repeat(np.arange(n_bags), bag_size)
    return X, labels, labels.reshape(n_bags, bag_size).mean(axis=1)[ids], ids


def true_risk(rng, n_bags, n_fits=60):
    X, labels, *_ = draw(rng, 500)
    risks = []
    for _ in range(n_fits):
        own, _, y, ids = draw(rng, n_bags)
        scores = unbag.BagRidgeClassifier().fit(own, y, bags=ids).predict_proba(X)[:, 1]
        risks.append(np.mean((scores > 0.5) != labels))
    return np.mean(risks)


def gains(rng, n_curves):
    for number in range(n_curves):
        X, _, y, ids = draw(rng, 60)
        curve = unbag.bag_learning_curve(
            unbag.BagRidgeClassifier(), X, y, bags=ids, random_state=number
        )
        yield curve.gains[0]


@pytest.mark.statistical
def test_the_projected_gain_is_what_more_bags_bring(rng):
    truth = true_risk(rng, 48) - true_risk(rng, 96)
    found = list(gains(rng, 40))
    held = np.mean([g.low <= truth <= g.high for g in found])
    assert held >= 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / 40)
    middle = np.array([g.value for g in found])
    assert abs(middle.mean() - truth) < 4 * middle.std() / np.sqrt(40) + 0.005
    half = [abs(g.value - truth) <= (g.high - g.low) / 12 for g in found]
    assert np.mean(half) < 0.8  # a sixth of the interval would not hold it


def test_fits_are_nested_and_judged_on_the_same_bags(rng):
    X, _, y, ids = draw(rng, 40)
    seen = []

    class Watching(unbag.BagRidgeClassifier):
        def fit(self, X, y, *, bags=None, **options):
            seen.append(set(map(float, X[:, 0])))
            return super().fit(X, y, bags=bags, **options)

    curve = unbag.bag_learning_curve(
        Watching(), X, y, bags=ids, shares=(1.0, 0.25, 0.5), n_splits=4, factors=(3,)
    )
    assert curve.n_bags == [8, 15, 30] and curve.projected_n_bags == [90]
    for small, middle, large in zip(*[iter(seen)] * 3, strict=True):
        assert small < middle < large and len(large) == 300 and len(small) == 80
    assert {r.n_bags for r in curve.risks} == {40}


def test_the_words_follow_from_the_interval():
    falling = np.array([[0.4, 0.3, 0.2], [0.41, 0.3, 0.2], [0.4, 0.31, 0.2]])
    flat = np.array([[0.2, 0.2, 0.2001], [0.2, 0.2001, 0.2], [0.2001, 0.2, 0.2]])
    noise = np.array([[0.3, 0.2, 0.2], [0.1, 0.2, 0.2], [0.2, 0.3, 0.2]])
    risk = unbag.evaluation.Estimate(0.2, 0.18, 0.22, 0.01)
    for values, words in ((falling, "should lower"), (flat, "hardly"), (noise, "do not show")):
        gain = projected_gain(values, [25, 50, 100], 2, confidence=0.95)
        curve = unbag.evaluation.BagLearningCurve([25, 50, 100], [risk] * 3, [200], [gain], "error")
        assert words in curve.verdict
        assert words in " ".join(str(curve).split()) and "<table>" in curve._repr_html_()
        assert curve.plot().svg().count("<circle") == 3


def test_a_curve_needs_two_sizes_and_bags(rng):
    X, _, y, ids = draw(rng, 20)
    for shares in ((1.0,), (0.0, 1.0), (0.5, 1.5)):
        with pytest.raises(BagDataError, match="shares must be"):
            unbag.bag_learning_curve(unbag.BagRidgeClassifier(), X, y, bags=ids, shares=shares)
    with pytest.raises(BagDataError, match=r"different numbers of at least two.*got \[2, 2\]"):
        unbag.bag_learning_curve(unbag.BagRidgeClassifier(), X, y, bags=ids, shares=(0.1, 0.12))
    with pytest.raises(BagDataError, match="at least two bags in each fold, got 20 for 20 bags"):
        unbag.bag_learning_curve(unbag.BagRidgeClassifier(), X, y, bags=ids, n_splits=20)
