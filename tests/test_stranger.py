"""What users ran into: each case ended in a wrong number, an overwritten file or odd words."""

import numpy as np
import pandas as pd
import pytest

import unbag
from unbag.bags.making import make_bags
from unbag.errors import BagDataError
from unbag.estimators.saving import ModelFolderError


def bagged(rng, n_bags=60, size=10):
    X, ids = rng.normal(size=(n_bags * size, 2)), np.repeat(np.arange(n_bags), size)
    y = (X.sum(axis=1) > 0).reshape(n_bags, size).mean(axis=1)[ids]
    return X, y, ids


def test_a_model_is_not_saved_over_other_files(rng, tmp_path):
    X, y, ids = bagged(rng)
    model = unbag.BagRidgeClassifier().fit(X, y, bags=ids)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.json").write_text("mine")
    (tmp_path / "file").write_text("x")
    for name, words in (("mine", "holds other files"), ("file", "is a file")):
        with pytest.raises(ModelFolderError, match=words):
            model.save(tmp_path / name)
    assert (tmp_path / "mine" / "model.json").read_text() == "mine"
    assert model.save(model.save(tmp_path / "new")).is_dir()


def test_two_bags_have_an_estimate_and_no_interval(rng):
    labels, ids = rng.random(100) < 0.5, np.repeat([0, 1], 50)
    y = labels.reshape(2, 50).mean(axis=1)[ids]
    found = unbag.evaluate(np.full(100, 0.5), None, y, bags=ids)["brier"]
    assert np.isfinite(found.value) and np.isnan(found.low) and "fewer than three" in found.note


def test_yes_and_no_are_one_and_zero_at_prediction(rng):
    X, y, ids = bagged(rng)
    frame = pd.DataFrame({"x": X[:, 0], "smoker": X[:, 1] > 0})
    model = unbag.BagRidgeClassifier().fit(frame, y, bags=ids)
    wanted = model.predict_proba(frame)
    for kind in (int, float):
        again = model.predict_proba(frame.assign(smoker=frame.smoker.astype(kind)))
        assert (again == wanted).all()
    text = frame.assign(smoker=frame.smoker.astype(int).astype(str))
    assert (model.predict_proba(text) == wanted).all()
    with pytest.raises(ValueError, match="'smoker' was read as yes or no"):
        model.predict_proba(frame.assign(smoker=7 * frame.smoker))


def test_gaps_in_an_array_are_refused_with_a_way_out(rng):
    X, y, ids = bagged(rng)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN") as refused:
        unbag.BagRidgeClassifier().fit(X, y, bags=ids)
    assert "Pass a data frame" in str(refused.value) and "HistGradient" not in str(refused.value)


def test_a_fold_in_which_nothing_can_be_learned_is_named(rng):
    X, ids = rng.normal(size=(40, 2)), np.repeat(range(4), 10)
    y = np.array([0.3, 0.3, 0.3, 0.5])[ids]  # the fold that holds out the last learns from equals
    with pytest.raises(BagDataError, match="in the training bags of a fold: nothing to learn"):
        unbag.cross_fit_risk(unbag.BagRidgeClassifier(), X, y, bags=ids, n_splits=2)


def test_impossible_values_are_refused(rng):
    X, y, ids = bagged(rng)
    given = {"bags": ids, "noise_variance": 0.001}
    with pytest.raises(ValueError, match="noise_kurtosis must be at least -2"):
        unbag.evaluate(np.full(600, 0.5), None, y, noise_kurtosis=-50, **given)
    with pytest.raises(BagDataError, match="one-hot"):
        make_bags(X, np.where(X[:, 0] > 0, "yes", "no"), bag_size=10, seed=0)


def test_few_blocks_are_said_to_be_few(rng):
    X, y, ids = bagged(rng)
    model = unbag.BagRidgeClassifier().fit(X, y, bags=ids)
    found = unbag.evaluate(model, X, y, bags=ids, grouping="natural", blocks=ids // 30)
    assert "unknown: fewer than three" in found.verdict and "cannot tell" not in found.verdict
