"""Bags that all have one proportion teach nothing, and every estimator says so."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

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


RARE = np.where(
    IDS == 5, 0.1, 0.0
)  # one bag of six differs: the others agree in every fold with it


@pytest.mark.parametrize("name", ["BagStackingClassifier", "BagEMClassifier", "BagClassifier"])
def test_parts_of_the_bags_may_all_agree(name):
    clf = getattr(unbag, name)(random_state=0).fit(X, RARE, bags=IDS)
    assert clf.predict_proba(X)[:, 1].mean() < 0.3


@pytest.mark.parametrize("learner", [LogisticRegression(), KNeighborsClassifier(3)])
@pytest.mark.parametrize("task", ["multilabel", "multiclass"])
def test_a_class_that_takes_all_is_learned_and_saved(learner, task, tmp_path):
    shares = np.linspace(0, 1, 6)[IDS]
    y = np.column_stack([shares, np.zeros(60)]) if task == "multilabel" else np.eye(3)[[1] * 60]
    ids = IDS if task == "multilabel" else np.arange(60)  # bags of one skip the refusal
    data = unbag.Bags.from_arrays(X, bags=ids, y=y, task=task)
    clf = unbag.BagEMClassifier(learner, n_rounds=1, random_state=0).fit_bags(data)
    found = clf.predict_proba(X)
    np.testing.assert_allclose(found[:, 1], float(task == "multiclass"), atol=0.02)
    if isinstance(learner, LogisticRegression):
        again = unbag.BagEMClassifier.load(clf.save(tmp_path / "model"))
        np.testing.assert_allclose(again.predict_proba(X), found, atol=1e-6)
