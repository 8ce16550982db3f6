"""A model folder: complete, never half written, and nothing in it is executed."""

import json

import numpy as np
import pytest
from torch import nn

from unbag import BagClassifier, BagRidgeClassifier
from unbag.estimators import ModelFolderError


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


def test_the_first_format_is_read(folder, rng):
    """It knew no estimated risk; folders that have one all the same keep it."""
    X = rng.normal(size=(60, 3))
    description = json.loads((folder / "model.json").read_text())
    assert description["format"] == 2
    old = {name: value for name, value in description.items() if name != "risk"}
    (folder / "model.json").write_text(json.dumps(old | {"format": 1}))
    again = BagClassifier.load(folder)
    assert again.risk_ is None
    (folder / "model.json").write_text(json.dumps(description))
    np.testing.assert_array_equal(again.predict(X), BagClassifier.load(folder).predict(X))


@pytest.mark.parametrize("number", [99, 0, None, "2"])
def test_another_format_is_refused(folder, number):
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(description | {"format": number}))
    with pytest.raises(ModelFolderError, match="format"):
        BagClassifier.load(folder)


def test_weights_that_do_not_fit_are_refused(folder):
    description = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(description | {"input_shape": [7]}))
    with pytest.raises(ModelFolderError, match="do not fit"):
        BagClassifier.load(folder)


def build(input_shape, n_outputs):
    return nn.Linear(input_shape[0], n_outputs)


def test_a_net_of_ones_own_needs_its_function(rng, tmp_path):
    X = rng.normal(size=(60, 3))
    clf = BagClassifier(model=build, max_epochs=2, random_state=0).fit(X, X[:, 0] > 0)
    clf.save(tmp_path / "own")
    with pytest.raises(ModelFolderError, match="pass `model`"):
        BagClassifier.load(tmp_path / "own")
    again = BagClassifier.load(tmp_path / "own", model=build)
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
