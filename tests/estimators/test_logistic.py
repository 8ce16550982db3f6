"""Logistic regression by counts of bags."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from unbag import BagLogisticClassifier
from unbag.estimators.count_regression import BagCounts, fit_logits, shift_to_rate


@parametrize_with_checks([BagLogisticClassifier(random_state=0)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def world(rng, n_bags, bag_size, effect=0.0):
    X = rng.normal(size=(n_bags * bag_size, 3)) + np.repeat(
        rng.normal(size=(n_bags, 3)), bag_size, axis=0
    )
    own = np.repeat(effect * rng.normal(size=n_bags), bag_size)
    labels = rng.uniform(size=len(X)) < expit(X @ [1.0, -0.5, 0.0] + 0.3 + own)
    bags = np.repeat(np.arange(n_bags), bag_size)
    return X, labels.reshape(n_bags, -1).mean(axis=1)[bags], bags, labels


def test_bags_of_one_give_logistic_regression(rng):
    X, _, _, labels = world(rng, 500, 1)
    ours = BagLogisticClassifier(penalties=[1e-6]).fit(X, labels)
    theirs = LogisticRegression(C=1e6).fit(X, labels)
    # The Gaussian law has another optimum, less precise, within a standard error of the other.
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=3 / np.sqrt(500))


def test_natural_groups_leave_the_weights_unbiased(rng):
    """Features that differ between bags do not bias them, as they do the pairwise risk."""
    found = []
    for _ in range(20):
        X, y, bags, _ = world(rng, 100, 10)
        found.append(BagLogisticClassifier(penalties=[1e-3]).fit(X, y, bags=bags).coef_)
    error = np.std(found, axis=0) / np.sqrt(20)
    assert (np.abs(np.mean(found, axis=0) - [1.0, -0.5, 0.0]) < 4 * error + 0.03).all()


def test_the_effect_of_bags_is_found(rng):
    for effect in (0.0, 0.5):
        X, y, bags, _ = world(rng, 400, 20, effect=effect)
        clf = BagLogisticClassifier(penalties=[0.1], bag_effects=True).fit(X, y, bags=bags)
        # A bag of 20 has a logit of variance 1 / 4 from its labels alone: 400 of them tell the
        # variance of the effect with an error near (1 / 4 + 1 / 4) sqrt(2 / 400) = 0.035.
        assert abs(clf.effect_variance_[0] - effect**2) < 4 * 0.035


def test_the_penalty_is_large_where_nothing_is_to_be_learned(rng):
    X, _, bags, _ = world(rng, 40, 20)
    y = rng.binomial(20, 0.5, 40)[bags] / 20
    clf = BagLogisticClassifier(random_state=0).fit(X, y, bags=bags)
    assert np.abs(clf.coef_).max() < 0.5


def test_scoring_reaches_a_stationary_point(rng):
    X, y, bags, _ = world(rng, 50, 10)
    design = np.column_stack([X, np.ones(500)])
    counts = BagCounts(np.bincount(bags, y), np.full(50, 10), np.arange(50) * 10, np.zeros(50))
    fit = fit_logits(design, counts, np.full(4, 0.1), start=np.zeros(4), n_steps=50)
    scores = expit(design @ fit.weights)
    variance = counts.variance(scores, 0.0)
    slopes = counts.sum((scores * (1 - scores))[:, None] * design)
    score = slopes.T @ ((counts.counts - counts.sum(scores)) / variance) - 0.1 * fit.weights
    scale = np.sqrt(np.diag((slopes / variance[:, None]).T @ slopes))
    assert (np.abs(score) < scale).all()


def test_gaps_are_filled_and_folders_read_back(rng, tmp_path):
    X, y, bags, labels = world(rng, 100, 10)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    clf = BagLogisticClassifier(random_state=0).fit(X, y, bags=bags)
    assert clf.score(X, labels) > 0.65
    again = BagLogisticClassifier.load(clf.save(tmp_path / "m"))
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X))


def test_a_column_without_values_changes_nothing(rng):
    X, y, bags, _ = world(rng, 50, 10)
    empty = np.column_stack([X, np.full(len(X), np.nan)])
    found = BagLogisticClassifier(random_state=0).fit(empty, y, bags=bags).predict_proba(empty)
    wanted = BagLogisticClassifier(random_state=0).fit(X, y, bags=bags).predict_proba(X)
    np.testing.assert_allclose(found, wanted)


def test_bad_penalties_are_named(rng):
    X, y, bags, _ = world(rng, 10, 5)
    with pytest.raises(ValueError, match="penalties must be"):
        BagLogisticClassifier(penalties=[-1.0]).fit(X, y, bags=bags)


@pytest.mark.parametrize("scale", [1.0, 5000.0])
def test_the_shift_reaches_the_rate_for_steep_logits(scale, rng):
    logits = scale * (rng.normal(size=1000) - 2)
    assert expit(logits + shift_to_rate(logits, 0.3)).mean() == pytest.approx(0.3, abs=2e-3)


def test_several_classes_have_probabilities_however_far_away(rng):
    X = rng.normal(size=(400, 3))
    clf = BagLogisticClassifier(random_state=0).fit(X, X.argmax(axis=1))
    far = clf.predict_proba(1e6 * rng.normal(size=(50, 3)))
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far.sum(axis=1), 1)
