"""A word or a number that means nothing is refused by name, not taken for something else."""

import numpy as np
import pytest

from unbag import (
    BagBoostingClassifier,
    BagClassifier,
    BagRidgeClassifier,
    compare_models,
    evaluate,
    make_bags,
)
from unbag.evaluation import bag_scorer, estimate_risk
from unbag.tables import Roles
from unbag.tables.options import FitOptions
from unbag.training import Settings

X = np.random.default_rng(0).normal(size=(400, 2)).astype("float32")
BAGS = make_bags(X, X[:, 0] > 0, bag_size=10, seed=0)
SCORES = np.full(400, 0.4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "linear"}, "schedule must be 'constant' or 'cosine', got 'linear'"),
        ({"max_epochs": -3}, "max_epochs must be a whole number of at least 1, got -3"),
        ({"max_epochs": 1.5}, "max_epochs"),
        ({"max_epochs": None}, "max_epochs"),
        ({"bags_per_batch": 0}, "bags_per_batch"),
        ({"device": "tpu"}, "device must be one that torch can use here, got 'tpu': "),
        ({"device": "cuda:99"}, "device must be one that torch can use here, got 'cuda:99': "),
        ({"device": None}, "device"),
    ],
)
def test_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Settings(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"schedule": "linear"},
        {"max_epochs": 0},
        {"validation_share": 1.5},
        {"validation_share": 0.999, "refit": False},
        {"random_state": "today"},
    ],
)
def test_nets(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must"):
        BagClassifier(**options).fit_bags(BAGS)


def test_a_generator_is_a_random_state():
    clf = BagClassifier(max_epochs=1, random_state=np.random.default_rng(0)).fit_bags(BAGS)
    assert clf.result_.trial.seed == np.random.default_rng(0).integers(2**31)


@pytest.mark.parametrize("penalties", [1.0, [], [-1.0], [[1.0]]])
def test_penalties(penalties):
    with pytest.raises(ValueError, match="penalties must be a sequence"):
        BagRidgeClassifier(penalties=penalties).fit_bags(BAGS)


def test_metrics():
    with pytest.raises(ValueError, match=r"metric must be 'error', .* got 'accuracy'"):
        bag_scorer("accuracy")


@pytest.mark.parametrize("name", ["proportions", "counts"])
def test_names_of_columns(name):
    with pytest.raises(ValueError, match=rf"{name} must be a tuple .* Write \('rate',\)"):
        Roles("group", **{name: "rate"})


def test_names_of_models():
    with pytest.raises(ValueError, match="models must be a tuple of names, got 'ridge'"):
        FitOptions(models="ridge")
    with pytest.raises(ValueError, match=r"models must be 'prior', 'ridge', .* got 'foo'"):
        FitOptions(models=("ridge", "foo"))


@pytest.mark.parametrize(
    "options",
    [
        {"models": ("eprm",)},
        {"grouping": "by hand"},
        {"jobs": 0},
        {"held_out": 0.7},
        {"held_out": 20},
    ],
)
def test_options_of_a_fit(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must"):
        FitOptions(**options)


@pytest.mark.parametrize(
    "options",
    [{"n_runs": 0}, {"n_estimators": 0}, {"cv": -1}],
)
def test_trees(options):
    pytest.importorskip("lightgbm")
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        BagBoostingClassifier(**options).fit_bags(BAGS)


def test_remainder():
    with pytest.raises(ValueError, match="remainder must be 'keep' or 'drop', got 'pad'"):
        make_bags(X, X[:, 0] > 0, bag_size=30, seed=0, remainder="pad")


@pytest.mark.parametrize("confidence", [95, 0, 1, -0.5, np.nan])
def test_confidence(confidence):
    message = "confidence must lie between 0 and 1"
    with pytest.raises(ValueError, match=message):
        evaluate(SCORES, BAGS, confidence=confidence)
    with pytest.raises(ValueError, match=message):
        estimate_risk(SCORES, BAGS, confidence=confidence)
    with pytest.raises(ValueError, match=message):
        compare_models(SCORES, SCORES, BAGS, confidence=confidence)


def test_loss():
    with pytest.raises(ValueError, match="loss must be"):
        estimate_risk(SCORES, BAGS, loss="log")
    with pytest.raises(ValueError, match="loss must be"):
        compare_models(SCORES, SCORES, BAGS, loss="log")
