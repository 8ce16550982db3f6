"""`BagGaussianProcessClassifier`: its columns, its equations, and what few bags teach it."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import multivariate_normal
from sklearn.metrics import roc_auc_score

from unbag import (
    BagGaussianProcessClassifier,
    BagGaussianProcessRegressor,
    BagRidgeClassifier,
    Bags,
)
from unbag.errors import BagDataError
from unbag.estimators.closed_form import BagStatistics
from unbag.estimators.gaussian_process import (
    BagProcess,
    column_means,
    few_weights,
    many_weights,
    posterior_mean,
    prior_draws,
)
from unbag.estimators.smooth_features import SmoothFeatures

BLOCKS = np.array([0, 0, 1, 1, 1, 2])
DRAW = np.array([0.4, 0.1, 0.2, 0.3, 0.05])


def bags_of(rng, proportions=None, n_bags=9):
    """Bags with noise and columns of three blocks."""
    proportions = rng.random(n_bags) if proportions is None else proportions
    sizes = rng.integers(1, 30, n_bags).astype(float)
    noise = 0.01 * rng.random(n_bags)
    return BagStatistics(rng.normal(size=(n_bags, 6)), proportions, sizes, noise)


def covariance(bags, draw):
    """That of proportions, divided by p (1 - p), as the docstring says."""
    rate = np.average(bags.proportions, weights=bags.weights)
    between = (bags.means * draw[1:-1][BLOCKS]) @ bags.means.T
    return between + np.diag(draw[0] / bags.sizes + draw[-1] + bags.noise / (rate * (1 - rate)))


def process_of(bags):
    rate = np.average(bags.proportions, weights=bags.weights)
    return BagProcess(bags, BLOCKS, rate * (1 - rate))


def test_weights_are_the_best_linear_prediction(rng):
    """Against covariances of the functions with the proportions."""
    bags = bags_of(rng)
    inverse, ones = np.linalg.inv(covariance(bags, DRAW)), np.ones(9)
    intercept = ones @ inverse @ bags.proportions / (ones @ inverse @ ones)
    expected = DRAW[1:-1][BLOCKS] * (bags.means.T @ inverse @ (bags.proportions - intercept))
    found = process_of(bags).weights(DRAW)
    np.testing.assert_allclose(found, [*expected, intercept], atol=1e-10)


def test_evidence_is_the_density_of_contrasts(rng):
    """Of all that does not depend on the intercept, up to a constant."""
    bags = bags_of(rng)
    rate = np.average(bags.proportions, weights=bags.weights)
    contrasts = null_space(np.ones((1, 9))).T
    draws, expected = [DRAW, np.array([0.6, 0.3, 0.05, 0.05, 0.0])], []
    for draw in draws:
        of_contrasts = rate * (1 - rate) * contrasts @ covariance(bags, draw) @ contrasts.T
        law = multivariate_normal(cov=of_contrasts)
        expected.append(law.logpdf(contrasts @ bags.proportions))
    found = process_of(bags).log_evidence(np.array(draws))
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0])


def surprise(seed, *, variance=1.0, n_worlds=150):
    """Mean of posterior means less the truth, in standard errors, over worlds from the prior."""
    rng = np.random.default_rng(seed)
    draws, gaps = prior_draws(0, bag_effects=True), []
    for truth in draws[rng.integers(0, len(draws), n_worlds)]:
        means, sizes = rng.normal(size=(25, 6)) / 4, np.full(25, 20.0)
        bags = BagStatistics(means, np.full(25, 0.5), sizes, np.zeros(25))
        truth[0] = max(truth[0], 0.05)  # the least noise that is allowed for
        own = np.linalg.cholesky(variance * covariance(bags, truth) / 4) @ rng.normal(size=25)
        process = process_of(bags)
        process.target = process.root * own
        gaps.append((posterior_mean(process, draws) - truth)[[0, 1, 2, 3]])
    gaps = np.array(gaps)
    return np.abs(gaps.mean(axis=0) / gaps.std(axis=0, ddof=1)).max() * n_worlds**0.5


@pytest.mark.statistical
def test_posterior_means_are_right_on_average(seed):
    assert surprise(seed) < 4


@pytest.mark.statistical
def test_a_label_of_another_variance_is_noticed(seed):
    assert surprise(seed, variance=0.25) > 4


def test_many_bags_have_the_solution_of_few(rng, monkeypatch):
    """Equations as large as the columns, some bags at a time, beside those as large as the bags."""
    monkeypatch.setattr("unbag.estimators.gaussian_process.CHUNK", 50)
    X, ids = rng.normal(size=(300, 2)), np.repeat(np.arange(30), 10)
    data = Bags.from_arrays(X, bags=ids, y=rng.random(30)[ids], noise_variance=0.01)
    features = SmoothFeatures.of(X, n_waves=20, seed=0)
    bags = reduce(BagStatistics.joined, column_means(features, data))
    own = replace(bags, proportions=bags.proportions[:, 0])
    process = BagProcess(own, features.blocks, 0.2)
    many = many_weights(features, data, [process], [DRAW])
    np.testing.assert_allclose(many, few_weights([process], [DRAW]), atol=1e-8)


def test_blocks_of_columns_have_unit_variance(rng):
    X = np.column_stack([1000 * rng.normal(size=500), rng.integers(0, 2, 500), np.zeros(500)])
    features = SmoothFeatures.of(X, n_waves=40, seed=0)
    columns = features(X)
    np.testing.assert_allclose(columns.mean(axis=0, dtype=float), 0, atol=1e-6)
    assert np.bincount(features.blocks).tolist() == [3, 7, 40]
    variances = np.bincount(features.blocks, columns.var(axis=0))
    np.testing.assert_allclose(variances, 1, rtol=1e-5)


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_single_precision_is_enough_far_from_zero(shift, rng):
    """Times in seconds vary by little of their size. Without centring the waves would be noise."""
    X = rng.normal(size=(500, 4))
    features = SmoothFeatures.of(X + shift, n_waves=40, seed=0)
    angles = (X - X.mean(axis=0)) @ features.directions + features.phases
    waves = np.cos(angles) - np.cos(angles).mean(axis=0)
    found = features(X + shift)[:, features.blocks == 2] / features.factor[features.blocks == 2]
    np.testing.assert_allclose(found, waves, atol=1e-5)
    lost = np.cos(np.float32(X + 1e9) @ np.float32(features.directions))
    assert np.abs(lost - lost.mean(axis=0) - waves).max() > 0.1


def auc_on_few_bags(classifier, seed):
    """AUC after 30 bags of 200, where the label hangs on a curve of one of ten features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8000, 10))
    labels = rng.random(8000) < 1 / (1 + np.exp(2 - 2 * X[:, 0] ** 2 - X[:, 1]))
    ids = np.repeat(np.arange(30), 200)
    y = labels[:6000].reshape(30, 200).mean(axis=1)[ids]
    scores = classifier.fit(X[:6000], y, bags=ids).predict_proba(X[6000:])[:, 1]
    return roc_auc_score(labels[6000:], scores)


def test_few_bags_teach_it_a_curve_that_ridge_misses():
    draws = range(8)
    curve = [auc_on_few_bags(BagGaussianProcessClassifier(random_state=0), s) for s in draws]
    line = [auc_on_few_bags(BagRidgeClassifier(), seed) for seed in draws]
    gain = np.subtract(curve, line)
    assert gain.mean() > 4 * gain.std(ddof=1) / len(gain) ** 0.5


def test_scores_shrink_to_the_rate_where_features_say_nothing(rng):
    X = rng.normal(size=(8000, 10))
    ids = np.repeat(np.arange(40), 200)
    y = (rng.random(8000) < 0.3).reshape(40, 200).mean(axis=1)[ids]
    clf = BagGaussianProcessClassifier(random_state=0).fit(X, y, bags=ids)
    assert clf.variance_shares_[0, 0] > 0.7
    assert clf.predict_proba(X)[:, 1].std() < 0.2


def test_noisy_bags_have_less_weight(rng):
    """A bag of very large noise changes nothing."""
    X, ids = rng.normal(size=(400, 2)), np.repeat(np.arange(20), 20)
    y = np.array([(X[ids == i, 0] > 0).mean() for i in range(20)])
    wrong = np.r_[1 - y[0], y[1:]]
    noise = np.r_[1e6, np.zeros(19)]
    options = {"bags": ids, "noise_variance": noise[ids]}
    one, other = (
        BagGaussianProcessClassifier(random_state=0).fit(X, values[ids], **options)
        for values in (y, wrong)
    )
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)


def test_no_waves_are_refused(rng):
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="n_waves"):
        BagGaussianProcessClassifier(n_waves=0).fit(X, X[:, 0] > 0)


def test_several_classes_and_labels(rng):
    X = rng.normal(size=(1200, 2))
    classes = np.eye(3)[np.digitize(X[:, 0], [-0.5, 0.5])]
    ids = np.repeat(np.arange(120), 10)
    for labels, task in ((classes, "multiclass"), (classes[:, :2], "multilabel")):
        y = labels.reshape(120, 10, -1).mean(axis=1)[ids]
        clf = BagGaussianProcessClassifier(random_state=0).fit(X, y, bags=ids, task=task)
        found = clf.predict(X) if task == "multilabel" else np.eye(3)[clf.predict(X)]
        assert (found == labels).mean() > 0.85


def test_constant_amounts_are_predicted(rng):
    model = BagGaussianProcessRegressor(random_state=0)
    model.fit(rng.normal(size=(50, 2)), np.full(50, 3.0))
    np.testing.assert_allclose(model.predict(rng.normal(size=(5, 2))), 3.0)


def test_a_column_beyond_double_precision_is_named(rng):
    X = rng.normal(size=(50, 3))
    X[:, 1] *= 1e200
    with pytest.raises(BagDataError, match="column 1 reaches"):
        BagGaussianProcessClassifier().fit(X, X[:, 0] > 0)
