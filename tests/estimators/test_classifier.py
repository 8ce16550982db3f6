"""What only `BagClassifier` does: bags set aside, early stopping, a risk after fit."""

import numpy as np
import pytest

from unbag import BagClassifier, BagTarget, make_bags


@pytest.fixture
def bagged(rng):
    X = rng.normal(size=(3000, 4)).astype("float32")
    labels = (X[:, 0] + 0.3 * rng.normal(size=3000) > 0).astype(int)
    bags = make_bags(X, labels, bag_size=10, seed=0)
    return X, BagTarget(bags.bag_of_row, bags.proportions[bags.bag_of_row]), labels


def test_bags_set_aside_give_a_risk(bagged, rng):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=10, validation_share=0.3, random_state=0).fit(X, y)
    assert clf.risk_.n_bags == 90
    assert clf.risk_.low < 0.1 < clf.risk_.high + 0.05
    assert len(clf.result_.history["held_out_risk"]) == 10
    assert clf.result_.best_epoch == 9  # nothing was chosen, so the risk is unbiased


def test_without_bags_aside_there_is_no_risk(bagged):
    X, y, _ = bagged
    assert BagClassifier(max_epochs=1, random_state=0).fit(X, y).risk_ is None


def test_patience_chooses_on_one_half_and_measures_on_the_other(bagged):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=30, validation_share=0.4, patience=3, random_state=0).fit(X, y)
    assert clf.risk_.n_bags == 60
    history = clf.result_.history["held_out_risk"]
    assert clf.result_.best_epoch == int(np.argmin(history))


def test_patience_needs_bags_aside(bagged):
    X, y, _ = bagged
    with pytest.raises(ValueError, match="validation_share"):
        BagClassifier(patience=3).fit(X, y)


def test_the_risk_is_saved(bagged, tmp_path):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=2, validation_share=0.3, random_state=0).fit(X, y)
    assert BagClassifier.load(clf.save(tmp_path / "m")).risk_ == clf.risk_


def test_a_seed_decides_the_fit(bagged):
    X, y, _ = bagged
    one, two = (BagClassifier(max_epochs=2, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    state = np.random.RandomState(0)
    other = BagClassifier(max_epochs=2, random_state=state).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), one.predict_proba(X))
