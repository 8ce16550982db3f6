"""Bags that all have one proportion teach nothing, and every estimator says so."""

import numpy as np
import pytest

import unbag
from unbag.errors import BagDataError

X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
IDS = np.repeat(np.arange(6), 10)
ESTIMATORS = [name for name in unbag.__all__ if name.endswith("Classifier")]


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_equal_rates_are_refused(name, rate):
    with pytest.raises(BagDataError, match=rf"nothing to learn from: all 6 bags .* {rate}"):
        getattr(unbag, name)().fit(X, np.full(60, rate), bags=IDS)


def test_equal_rates_of_several_classes_are_refused():
    with pytest.raises(BagDataError, match="nothing to learn from"):
        unbag.BagRidgeClassifier().fit(X, np.tile([0.2, 0.3, 0.5], (60, 1)), bags=IDS)


def test_bags_that_are_added_later_may_all_agree():
    clf = unbag.BagRidgeClassifier().partial_fit(X, np.full(60, 0.3), bags=IDS)
    clf.partial_fit(X, np.linspace(0, 1, 6).round(1)[IDS], bags=IDS)
    assert np.ptp(clf.predict_proba(X)) > 0
