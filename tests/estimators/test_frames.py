"""Frames with strings, categories, dates and gaps go straight into the estimators."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import unbag
from unbag import (
    BagBoostingClassifier,
    BagClassifier,
    BagGaussianProcessClassifier,
    BagRidgeClassifier,
    cross_fit_risk,
)
from unbag.errors import BagDataError, TableError

N_BAGS, SIZE = 80, 10


@pytest.fixture
def problem(rng):
    """A frame whose label is "the colour is red", its bags and their proportions."""
    n = N_BAGS * SIZE
    colour = rng.choice(["red", "green", "blue"], n)
    columns = {
        "colour": colour,
        "size": pd.Categorical(rng.choice(["small", "large"], n)),
        "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        "member": rng.random(n) < 0.5,
    }
    bags = np.repeat(np.arange(N_BAGS), SIZE)
    labels = colour == "red"
    return pd.DataFrame(columns), labels, bags, labels.reshape(N_BAGS, SIZE).mean(axis=1)[bags]


CLASSIFIERS = [
    BagRidgeClassifier(),
    BagGaussianProcessClassifier(random_state=0),
    BagClassifier(max_epochs=30, random_state=0),
    BagBoostingClassifier(random_state=0),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
def test_a_frame_is_learned_from_saved_and_predicted(problem, classifier, tmp_path):
    if isinstance(classifier, BagBoostingClassifier):
        pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    frame, labels, bags, y = problem
    clf = clone(classifier).fit(frame, y, bags=bags)
    assert (clf.predict(frame) == labels).mean() > 0.95
    again = type(clf).load(clf.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.predict_proba(frame), clf.predict_proba(frame))
    turned = frame[frame.columns[::-1]].assign(other=1)
    np.testing.assert_array_equal(clf.predict_proba(turned), clf.predict_proba(frame))


def test_pandas_polars_and_the_encoder_beforehand_give_one_model(problem):
    frame, _, bags, y = problem
    encoded = unbag.TableEncoder().fit_transform(frame)
    frames = [frame, pl.from_pandas(frame), encoded]
    scores = [BagRidgeClassifier().fit(f, y, bags=bags).predict_proba(f) for f in frames]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_numbers_are_used_as_they_are(problem):
    frame, _, bags, y = problem
    numbers = frame[["x"]].fillna(0).assign(z=1.0)
    clf = BagRidgeClassifier().fit(numbers, y, bags=bags)
    assert clf.encoder_ is None and clf.feature_names_in_.tolist() == ["x", "z"]
    assert BagRidgeClassifier().fit(frame, y, bags=bags).fit(numbers, y, bags=bags).encoder_ is None


def test_frames_are_evaluated_cross_fitted_and_checked(problem):
    frame, _, bags, y = problem
    clf = BagRidgeClassifier().fit(frame, y, bags=bags)
    assert unbag.evaluate(clf, frame, y, bags=bags)["error"].value < 0.05
    assert clf.score(frame, y, bags=bags) > 0.95
    assert cross_fit_risk(BagRidgeClassifier(), frame, y, bags=bags).value < 0.1
    assert unbag.check_bags(frame, y, bags=bags).plausible


def test_a_lost_column_is_named(problem):
    frame, _, bags, y = problem
    clf = BagRidgeClassifier().fit(frame, y, bags=bags)
    with pytest.raises(TableError, match="no column 'colour'"):
        clf.predict(frame.drop(columns="colour"))


def test_columns_of_one_name_are_named(problem):
    frame, _, bags, y = problem
    twice = frame[["colour", "x", "x"]]
    with pytest.raises(TableError, match="Column 'x' comes more than once"):
        BagRidgeClassifier().fit(twice, y, bags=bags)


@pytest.mark.parametrize("estimator", [BagRidgeClassifier(), unbag.BagRidgeRegressor()])
def test_a_mapping_by_bag_is_shown_its_way(problem, estimator):
    frame, _, bags, y = problem
    with pytest.raises(BagDataError, match=r"got a mapping. Pass BagTarget"):
        estimator.fit(frame, dict(zip(bags, y, strict=True)), bags=bags)
