"""A model folder: complete, never half written, and nothing in it is executed."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch import nn

from unbag import (
    BagBoostingClassifier,
    BagClassifier,
    BagGaussianProcessClassifier,
    BagRidgeClassifier,
)
from unbag.estimators import ModelFolderError
from unbag.rules import DebiasedSquare, ProportionSquare


@pytest.fixture
def folder(rng, tmp_path):
    X = rng.normal(size=(60, 3))
    BagClassifier(max_epochs=2, random_state=0).fit(X, X[:, 0] > 0).save(tmp_path / "net")
    return tmp_path / "net"


def test_string_classes_survive(rng, tmp_path):
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    clf = BagRidgeClassifier().fit(X, y)
    again = BagRidgeClassifier.load(clf.save(tmp_path / "m"))
    assert (again.predict(X) == clf.predict(X)).all()


def test_whoever_may_read_one_file_may_read_the_other(folder):
    modes = {(folder / name).stat().st_mode for name in ("model.json", "model.safetensors")}
    assert len(modes) == 1


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelFolderError, match=name):
        BagClassifier.load(folder)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_damaged_file_is_refused(folder, name):
    (folder / name).write_bytes(b"\x80\x04nonsense")
    with pytest.raises(ModelFolderError, match="damaged"):
        BagClassifier.load(folder)


def test_another_kind_is_refused(folder):
    with pytest.raises(ModelFolderError, match="wanted a BagRidgeClassifier"):
        BagRidgeClassifier.load(folder)


@pytest.mark.parametrize("number", [99, 0, None, "2"])
def test_another_format_is_refused(folder, number):
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(description | {"format": number}))
    with pytest.raises(ModelFolderError, match="format"):
        BagClassifier.load(folder)


def test_weights_that_do_not_fit_are_refused(folder):
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(
        json.dumps(description | {"net": description["net"] | {"input_shape": [7]}})
    )
    with pytest.raises(ModelFolderError, match="do not fit"):
        BagClassifier.load(folder)


def build(input_shape, n_outputs):
    return nn.Linear(input_shape[0], n_outputs)


FITTED_OTHERWISE = [
    BagClassifier("proportion_square", "linear", max_epochs=2, schedule="cosine", random_state=3),
    BagClassifier(DebiasedSquare(debias="moving", beta=0.5), max_epochs=2, device="cpu"),
    BagGaussianProcessClassifier(n_waves=20, random_state=1),
    BagRidgeClassifier(penalties=[0.1, 1.0]),
    BagBoostingClassifier(rule="count_likelihood", n_estimators=3, n_runs=1, reg_lambda=2.0),
]
every_kind = pytest.mark.parametrize("model", FITTED_OTHERWISE, ids=lambda m: type(m).__name__)


@pytest.fixture
def frame(rng):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(rng.normal(size=(60, 3)), columns=["age", "height", "weight"])


@every_kind
def test_parameters_and_names_of_features_survive(model, frame, tmp_path):
    _skip_without_lightgbm(model)
    again = type(model).load(clone(model).fit(frame, frame["age"] > 0).save(tmp_path / "m"))
    assert again.get_params() == model.get_params()
    assert again.feature_names_in_.tolist() == ["age", "height", "weight"]
    with pytest.raises(ValueError, match="same order"):
        again.predict(frame[["weight", "height", "age"]])


def test_parameters_that_json_cannot_hold(rng, tmp_path):
    X, grid = rng.normal(size=(60, 3)), np.logspace(-2, 2, 3)
    ridge = BagRidgeClassifier(penalties=grid).fit(X, X[:, 0] > 0)
    assert BagRidgeClassifier.load(ridge.save(tmp_path / "m")).penalties == grid.tolist()
    assert not hasattr(BagRidgeClassifier.load(tmp_path / "m"), "feature_names_in_")
    net = BagClassifier(max_epochs=np.int64(2), random_state=np.random.RandomState(0))
    again = BagClassifier.load(net.fit(X, X[:, 0] > 0).save(tmp_path / "net"))
    assert (again.max_epochs, again.random_state) == (2, None)


@every_kind
def test_nothing_is_saved_before_fit(model, tmp_path):
    with pytest.raises(NotFittedError):
        clone(model).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def _skip_without_lightgbm(model):
    if isinstance(model, BagBoostingClassifier):
        pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")


def test_a_net_of_ones_own_needs_its_function(rng, tmp_path):
    X = rng.normal(size=(60, 3))
    clf = BagClassifier(model=build, max_epochs=2, random_state=0).fit(X, X[:, 0] > 0)
    clf.save(tmp_path / "own")
    with pytest.raises(ModelFolderError, match="pass `model`"):
        BagClassifier.load(tmp_path / "own")
    again = BagClassifier.load(tmp_path / "own", model=build)
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))


class OwnRule(ProportionSquare):
    name = "own_rule"


def test_a_rule_of_ones_own_is_asked_for(rng, tmp_path):
    X = rng.normal(size=(60, 3))
    clf = BagClassifier(OwnRule(), max_epochs=2, random_state=0).fit(X, X[:, 0] > 0)
    clf.save(tmp_path / "own")
    with pytest.raises(ModelFolderError, match="pass `rule`"):
        BagClassifier.load(tmp_path / "own")
    again = BagClassifier.load(tmp_path / "own", rule=OwnRule())
    assert again.rule == OwnRule()
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
