"""Choosing without labels: scorers and cross-fitting."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from unbag import BagKFold, BagRidgeClassifier, BagTarget, compare_models, evaluate
from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.evaluation import (
    bag_scorer,
    cross_fit_risk,
    cross_fit_scores,
    estimate_risk,
)
from unbag.evaluation.selection import LOSSES


@pytest.fixture
def data(rng):
    X = rng.normal(size=(2400, 4))
    labels = (X[:, 0] + 0.3 * rng.normal(size=2400) > 0).astype(float)
    ids = np.repeat(np.arange(240), 10)
    return X, labels, BagTarget(ids, labels.reshape(240, 10).mean(axis=1)[ids])


@pytest.mark.parametrize("metric", ["error", "brier", "auc", "f1", "balanced_error"])
def test_scorers_serve_scikit_learn(data, metric):
    X, _, y = data
    scores = cross_val_score(BagRidgeClassifier(), X, y, cv=BagKFold(3), scoring=bag_scorer(metric))
    assert ((scores < 0.1) == (metric in LOSSES)).all()


def test_scorers_of_single_classes(data):
    X, labels, _ = data
    ids = np.repeat(np.arange(240), 10)
    y = BagTarget(ids, np.eye(3)[labels.astype(int)].reshape(240, 10, 3).mean(axis=1)[ids])
    fitted = BagRidgeClassifier().fit(X, y)
    assert bag_scorer("auc[0]")(fitted, X, y) > 0.9
    assert -0.2 < bag_scorer("balanced_error[1]")(fitted, X, y) < 0
    with pytest.raises(ValueError, match=r"metric must be one of .*auc\[0\].* got 'auc'"):
        bag_scorer("auc")(fitted, X, y)


def test_scorers_of_averages_over_classes(data):
    X, labels, _ = data
    ids = np.repeat(np.arange(240), 10)
    y = BagTarget(ids, np.eye(2)[labels.astype(int)].reshape(240, 10, 2).mean(axis=1)[ids])
    fitted = BagRidgeClassifier().fit(X, y)
    assert bag_scorer("macro_auc")(fitted, X, y) > 0.9


def test_a_search_finds_what_labels_would(data):
    X, labels, y = data
    grid = {"penalties": [[1e-2], [1e9]]}
    search = GridSearchCV(
        BagRidgeClassifier(), grid, cv=BagKFold(3), scoring=bag_scorer("brier")
    ).fit(X, y)
    assert search.best_params_ == {"penalties": [1e-2]}
    assert np.mean(search.predict(X) == labels) > 0.85


def test_scorers_refuse_targets_without_bags(data):
    X, labels, _ = data
    with pytest.raises(BagDataError, match="needs the bags"):
        bag_scorer()(LogisticRegression().fit(X, labels), X, labels)


def test_cross_fitted_risk_covers_the_error_of_new_instances(data, rng):
    X, _, y = data
    found = cross_fit_risk(BagRidgeClassifier(), X, y)
    fitted = BagRidgeClassifier().fit(X, y)
    fresh = rng.normal(size=(20_000, 4))
    truth = np.mean(fitted.predict(fresh) != (fresh[:, 0] + 0.3 * rng.normal(size=20_000) > 0))
    assert found.n_bags == 240
    assert abs(found.value - truth) < 4 * found.standard_error
    with pytest.raises(BagDataError, match="needs the bags"):
        cross_fit_risk(BagRidgeClassifier(), X, np.asarray(y))


def test_a_bag_has_no_part_in_its_own_scores(data):
    X, labels, y = data
    scores = cross_fit_scores(BagRidgeClassifier(), X, y)
    assert scores.shape == (len(X), 2) and ((scores[:, 1] > 0.5) == labels).mean() > 0.8
    own = y.bags == y.bags[0]
    altered = np.where(own, 1 - np.asarray(y), np.asarray(y))
    others = cross_fit_scores(BagRidgeClassifier(), X, altered, bags=y.bags)
    np.testing.assert_array_equal(scores[own], others[own])
    assert not np.allclose(scores[~own], others[~own])
    with pytest.raises(BagDataError, match="needs the bags"):
        cross_fit_scores(BagRidgeClassifier(), X, np.asarray(y))


def test_models_that_differ_in_their_mean_do_not_pass_for_errors(rng):
    """Cross-fitted nets lean to different sides: only bags of one net may be paired."""
    estimates, pooled = [], []
    for _ in range(300):
        labels = (rng.random(1500) < 0.5).astype(float)
        leaning = np.repeat(rng.normal(size=5) > 0, 300)  # which label each net errs towards
        wrong = rng.random(1500) < 0.2
        scores = np.where(wrong, leaning, labels)
        bags = Bags.from_arrays(
            labels[:, None],
            offsets=np.arange(0, 1501, 50),
            counts=labels.reshape(30, 50).sum(axis=1),
        )
        parts = np.split(np.arange(30), 5)
        truth = np.mean(scores != labels)
        estimates.append(estimate_risk(scores, bags, parts=parts).value - truth)
        pooled.append(estimate_risk(scores, bags).value - truth)
    assert abs(np.mean(estimates)) < 4 * np.std(estimates) / 300**0.5
    assert np.mean(pooled) > 4 * np.std(pooled) / 300**0.5


def test_folds_of_a_single_bag_are_refused(data):
    X, _, y = data
    few = slice(0, 60)
    with pytest.raises(BagDataError, match="n_splits"):
        cross_fit_risk(BagRidgeClassifier(), X[few], y[few], n_splits=5)


@pytest.fixture
def pipelines(rng):
    """Pipelines that look at a frame: columns by name, strings, and holes to fill."""
    pandas = pytest.importorskip("pandas")
    labels, ids = rng.random(600) < 0.5, np.repeat(np.arange(60), 10)
    number = np.where(rng.random(600) < 0.1, np.nan, labels + rng.normal(size=600))
    word = np.where(rng.random(600) < 0.8, labels, ~labels).astype(str)
    frame = pandas.DataFrame({"number": number, "word": word}, index=rng.permutation(600))
    y = BagTarget(ids, labels.reshape(60, 10).mean(axis=1)[ids])
    encode = make_column_transformer((SimpleImputer(), ["number"]), (OneHotEncoder(), ["word"]))
    both = make_pipeline(encode, BagRidgeClassifier())
    encode = make_column_transformer((OneHotEncoder(), ["word"]))
    words = make_pipeline(encode, LogisticRegression())
    return both.fit(frame, y), words.fit(frame, labels), frame, y


def test_pipelines_that_look_at_frames_are_evaluated_and_compared(pipelines):
    both, words, frame, y = pipelines
    assert 0.05 < evaluate(both, frame, y)["error"].value < 0.3
    found = compare_models(both, words, frame, y)
    errors = [evaluate(model, frame, y)["error"].value for model in (both, words)]
    assert found.difference.value == pytest.approx(errors[0] - errors[1])


def test_pipelines_that_look_at_frames_are_searched_and_cross_fitted(pipelines):
    both, _, frame, y = pipelines
    grid = {"bagridgeclassifier__penalties": [[1e-2], [1e2]]}
    search = GridSearchCV(both, grid, cv=BagKFold(3), scoring=bag_scorer()).fit(frame, y)
    assert -0.3 < search.best_score_ < -0.05
    found = cross_fit_risk(both, frame, y)
    assert 0.05 < found.value < 0.3
    assert cross_fit_risk(both, frame, np.asarray(y), bags=y.bags) == found


def test_instances_without_targets_are_named(pipelines):
    both, _, frame, y = pipelines
    with pytest.raises(BagDataError, match=r"\(590, 1\).*\(600, 1\)"):
        evaluate(both, frame, y[:590])
    with pytest.raises(ValueError, match="600, 590"):
        cross_fit_risk(both, frame, y[:590])


@pytest.fixture
def noisy(data, rng):
    """So much noise that some proportions leave [0, 1], and that it would pass for errors."""
    X, labels, y = data
    variances = np.where(np.arange(240) % 2, 0.01, 0.09)[y.bags]
    noise = rng.normal(size=240)[y.bags] * np.sqrt(variances)
    return X, labels, BagTarget(y.bags, np.asarray(y) + noise, noise_variance=variances)


def test_noise_is_no_error_whoever_asks(noisy):
    X, labels, y = noisy
    plain, noise = np.asarray(y), y.noise_variance
    clf = BagRidgeClassifier().fit(X, y)
    same = BagRidgeClassifier().fit(X, plain, bags=y.bags, noise_variance=noise)
    np.testing.assert_array_equal(clf.coef_, same.coef_)
    bags = Bags.from_arrays(X, bags=y.bags, y=plain, noise_variance=noise)
    found = estimate_risk(clf.predict_proba(X), bags)
    assert abs(found.value - np.mean(clf.predict(X) != labels)) < 4 * found.standard_error
    accuracy = pytest.approx(1 - found.value)
    assert clf.score(X, y) == accuracy
    assert clf.score(X, plain, bags=y.bags, noise_variance=noise) == accuracy
    assert 1 + bag_scorer()(clf, X, y) == accuracy
    assert 1 + bag_scorer()(clf, X, plain, bags=y.bags, noise_variance=noise) == accuracy
    assert evaluate(clf, X, y).to_dict() == evaluate(clf, bags).to_dict()
    with pytest.raises(BagDataError, match="no bags"):
        clf.score(X, labels, noise_variance=0.1)


def test_noisy_bags_are_searched_and_cross_fitted(noisy):
    X, _, y = noisy
    grid = {"penalties": [[1e-2], [1e9]]}
    search = GridSearchCV(BagRidgeClassifier(), grid, cv=BagKFold(3), error_score="raise")
    for scoring in (None, bag_scorer("brier")):
        found = search.set_params(scoring=scoring).fit(X, y)
        assert found.best_params_ == {"penalties": [1e-2]}
    risk = cross_fit_risk(BagRidgeClassifier(), X, y)
    plain, noise = np.asarray(y), y.noise_variance
    assert risk == cross_fit_risk(BagRidgeClassifier(), X, plain, bags=y.bags, noise_variance=noise)
    assert risk.value < 0.3


@pytest.mark.statistical
def test_cross_fitting_has_the_variance_that_its_interval_allows_for(rng):
    """Ridge with as many columns as it takes for half of the residuals to come from the fit."""
    errors, stated = [], []
    for _ in range(250):
        n_bags, bag_size, n_columns = 40, 20, 16
        X = rng.normal(size=(n_bags * bag_size, n_columns))
        labels = rng.uniform(size=len(X)) < 0.5 + 0.15 * X[:, 0].clip(-3, 3)
        counts = labels.reshape(n_bags, bag_size).sum(axis=1)
        bags = Bags.from_arrays(X, offsets=np.arange(n_bags + 1) * bag_size, counts=counts)
        parts, scores, truth = np.split(np.arange(n_bags), 5), np.empty(len(X)), []
        for part in parts:
            model = BagRidgeClassifier(penalties=[1e-3])
            model.fit_bags(bags.take(np.setdiff1d(np.arange(n_bags), part)))
            own = np.isin(bags.bag_of_row, part)
            scores[own] = model.predict_proba(X[own])[:, 1]
            fresh = rng.normal(size=(4000, n_columns))
            chances = 0.5 + 0.15 * fresh[:, 0].clip(-3, 3)
            found = model.predict_proba(fresh)[:, 1]
            truth.append(((found - chances) ** 2 + chances * (1 - chances)).mean())
        estimate = estimate_risk(scores, bags, loss="square", parts=parts)
        errors.append(estimate.value - np.mean(truth))
        stated.append(estimate.standard_error)
    # The standard error of a variance from 250 draws is 9 % of it.
    ratio = np.var(errors) / np.mean(np.square(stated))
    assert ratio < 1 + 4 * 0.09
    # Without the allowance the stated variance would be too small.
    assert 1.5 * ratio > 1 + 2 * 0.09
