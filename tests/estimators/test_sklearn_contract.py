"""scikit-learn's own checks, and its tools on top of ours."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from unbag import (
    BagClassifier,
    BagGaussianProcessClassifier,
    BagKFold,
    BagRidgeClassifier,
    BagTarget,
)
from unbag.errors import BagDataError, SplitBagsWarning


@parametrize_with_checks(
    [
        BagClassifier(max_epochs=20, random_state=0),
        BagGaussianProcessClassifier(random_state=0),
        BagRidgeClassifier(),
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture
def bagged(rng):
    X = rng.normal(size=(600, 4))
    labels = X[:, 0] > 0
    bags = np.repeat([f"bag {i}" for i in range(60)], 10)
    order = rng.permutation(600)
    y = np.repeat(labels.reshape(60, 10).mean(axis=1), 10)
    return X[order], y[order], bags[order], labels[order]


ESTIMATORS = [BagClassifier(max_epochs=15, random_state=0), BagRidgeClassifier()]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


@every_estimator
def test_learns_from_shuffled_string_bags(estimator, bagged):
    X, y, bags, labels = bagged
    clf = clone(estimator).fit(X, y, bags=bags)
    assert clf.score(X, labels.astype(int)) > 0.9
    assert clf.score(X, y, bags=bags) == pytest.approx(clf.score(X, labels.astype(int)), abs=0.06)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)


@every_estimator
def test_grid_search_with_a_bag_target(estimator, bagged):
    X, y, bags, _ = bagged
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    step = pipeline.steps[-1][0]
    name = "learning_rate" if hasattr(estimator, "learning_rate") else "penalties"
    values = [1e-2, 1e-3] if name == "learning_rate" else [[1e-3], [10.0]]
    search = GridSearchCV(pipeline, {f"{step}__{name}": values}, cv=BagKFold(3))
    search.fit(X, BagTarget(bags, y))
    assert search.best_score_ > 0.8


@every_estimator
def test_grid_search_with_metadata_routing(estimator, bagged):
    X, y, bags, _ = bagged
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), clone(estimator))
        scores = cross_validate(pipeline, X, y, cv=BagKFold(3), params={"groups": bags})
        search = GridSearchCV(pipeline, {"standardscaler__with_mean": [True]}, cv=BagKFold(3))
        search.fit(X, y, groups=bags)
    assert scores["test_score"].mean() > 0.8
    assert search.best_score_ == pytest.approx(scores["test_score"].mean())


def test_routing_on_and_off_agree(bagged):
    X, y, bags, _ = bagged
    off = cross_val_score(BagRidgeClassifier(), X, BagTarget(bags, y), cv=BagKFold(3))
    with sklearn.config_context(enable_metadata_routing=True):
        on = cross_val_score(BagRidgeClassifier(), X, y, cv=BagKFold(3), params={"groups": bags})
    np.testing.assert_allclose(on, off)


@pytest.mark.filterwarnings("ignore:proportions")
def test_a_split_that_cuts_bags_warns(bagged):
    X, y, bags, _ = bagged
    with pytest.warns(SplitBagsWarning, match="BagKFold"):
        cross_val_score(BagRidgeClassifier(), X, BagTarget(bags, y), cv=5)


def test_a_target_that_lost_its_bags_is_refused(bagged):
    X, y, bags, _ = bagged
    with pytest.raises(BagDataError, match="lost its bag ids"):
        BagRidgeClassifier().fit(X, BagTarget(bags, y) * 1.0)


def test_fractions_without_bags_are_refused(bagged):
    X, y, _, labels = bagged
    with pytest.raises(BagDataError, match="no bags were given"):
        BagRidgeClassifier().fit(X, y)
    clf = BagRidgeClassifier().fit(X, labels)
    with pytest.raises(BagDataError, match="no bags were given"):
        clf.score(X, y)


@every_estimator
@pytest.mark.parametrize("given", [{"noise_variance": 0.1}, {"task": "multiclass"}])
def test_what_is_said_about_bags_is_refused_without_bags(estimator, bagged, given):
    X, _, _, labels = bagged
    with pytest.raises(BagDataError, match=rf"{next(iter(given))} .* no bags were given"):
        clone(estimator).fit(X, labels, **given)


@every_estimator
def test_one_column_is_binary(estimator, bagged):
    X, y, bags, _ = bagged
    clf = clone(estimator).fit(X, y[:, None], bags=bags)
    assert clf.task_ == "binary"
    reference = clone(estimator).fit(X, y, bags=bags).predict(X)
    np.testing.assert_array_equal(clf.predict(X), reference)
    assert clf.score(X, y[:, None], bags=bags) > 0.9


@every_estimator
def test_the_task_may_be_said(estimator, bagged):
    X, y, bags, _ = bagged
    columns = np.stack([y, 1 - y], axis=1)
    assert clone(estimator).fit(X, columns, bags=bags).task_ == "multiclass"
    clf = clone(estimator).fit(X, columns, bags=bags, task="multilabel")
    assert clf.task_ == "multilabel" and clf.predict(X).shape == (600, 2)
    with pytest.raises(BagDataError, match="task must be 'binary' or 'amount' for one column"):
        clone(estimator).fit(X, y, bags=bags, task="multiclass")


def test_score_refuses_weights_with_bags(bagged):
    X, y, bags, _ = bagged
    clf = BagRidgeClassifier().fit(X, y, bags=bags)
    with pytest.raises(ValueError, match="sample_weight"):
        clf.score(X, y, bags=bags, sample_weight=np.ones(len(X)))


def test_selectors_and_kernels_in_front(bagged):
    X, y, bags, labels = bagged
    pipeline = make_pipeline(Nystroem(n_components=50, random_state=0), BagRidgeClassifier())
    pipeline.fit(X, BagTarget(bags, y))
    assert (pipeline.predict(X) == labels).mean() > 0.75
    selected = make_pipeline(SelectKBest(f_regression, k=1), BagRidgeClassifier())
    selected.fit(X, BagTarget(bags, y))
    assert selected[0].get_support().tolist() == [True, False, False, False]


@every_estimator
def test_data_frames(estimator, bagged):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y, bags, _ = bagged
    reference = clone(estimator).fit(X, y, bags=bags).predict_proba(X)
    for frame, series in [(pandas.DataFrame, pandas.Series), (polars.DataFrame, polars.Series)]:
        names = [f"x{i}" for i in range(4)]
        table = frame(dict(zip(names, X.T, strict=True)))
        clf = clone(estimator).fit(table, series(y), bags=series(bags))
        assert clf.feature_names_in_.tolist() == names
        np.testing.assert_allclose(clf.predict_proba(table), reference, atol=1e-9)


@every_estimator
def test_pickle(estimator, bagged):
    X, y, bags, _ = bagged
    clf = clone(estimator).fit(X, y, bags=bags)
    again = pickle.loads(pickle.dumps(clf))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    target = pickle.loads(pickle.dumps(BagTarget(bags, y)))  # noqa: S301
    assert (target.bags == bags).all() and (target == y).all()


@every_estimator
def test_save_and_load(estimator, bagged, tmp_path):
    X, y, bags, _ = bagged
    clf = clone(estimator).fit(X, y, bags=bags)
    folder = clf.save(tmp_path / "model")
    again = type(clf).load(folder)
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X))
    assert sorted(p.name for p in folder.iterdir()) == ["model.json", "model.safetensors"]


@every_estimator
def test_multiclass_from_proportions(estimator, rng):
    X = rng.normal(size=(900, 4))
    labels = X[:, :3].argmax(axis=1)
    bags = np.repeat(np.arange(90), 10)
    y = np.eye(3)[labels].reshape(90, 10, 3).mean(axis=1)[bags]
    clf = clone(estimator).fit(X, y, bags=bags)
    assert clf.score(X, labels) > 0.8
    assert clf.score(X, y, bags=bags) == pytest.approx(clf.score(X, labels), abs=0.08)
