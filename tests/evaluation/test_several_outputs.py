"""`evaluate` for several classes and several labels."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import unbag
from unbag.bags import Bags
from unbag.errors import BagDataError
from unbag.evaluation import Evaluation, estimate_risk, evaluate
from unbag.evaluation.random_groups import confusion_matrix, multiclass_log_loss


def multiclass_data(rng, n_instances=6000, bag_size=15):
    logits = 2 * rng.normal(size=(n_instances, 3))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    classes = (chances.cumsum(axis=1) > rng.random((n_instances, 1))).argmax(axis=1)
    ids = np.repeat(np.arange(n_instances // bag_size), bag_size)
    proportions = np.eye(3)[classes].reshape(-1, bag_size, 3).mean(axis=1)
    return chances, classes, ids, proportions


def test_multiclass(rng):
    from sklearn import metrics

    chances, classes, ids, proportions = multiclass_data(rng)
    found = evaluate(chances, np.zeros((len(ids), 1)), proportions[ids], bags=ids)
    truth = metrics.log_loss(classes, chances)
    assert found["log_loss"].low < truth < found["log_loss"].high
    assert found.confusion.shape == (3, 3)
    assert found.confusion.sum() == pytest.approx(1)
    error = np.mean(chances.argmax(axis=1) != classes)
    assert found["error"].low < error < found["error"].high
    assert "recall[2]" in found.estimates and len(found.roc) == 3


def test_multiclass_confusion_covers_entry_by_entry(rng):
    hits = []
    for _ in range(40):
        chances, _, ids, proportions = multiclass_data(rng, n_instances=1500)
        hard = np.eye(3)[chances.argmax(axis=1)]
        bags = Bags.from_arrays(hard, bags=ids, y=proportions[ids], task="multiclass")
        _, low, high = confusion_matrix(hard, bags)
        expected = TRUE_CONFUSION
        hits.append((low <= expected) & (expected <= high))
    assert 0.9 < np.mean(hits) < 0.99


@pytest.mark.parametrize("sizes", [[2, 2], [1, 3], [1, 2, 1], [1, 1, 1, 1]])
def test_multiclass_confusion_and_log_loss_are_unbiased_by_enumeration(sizes):
    joint = np.array([[0.3, 0.2], [0.1, 0.4]])
    scores = np.array([[0.8, 0.2], [0.3, 0.7]])  # of an instance predicted 0, and one predicted 1
    offsets, matrix, loss = np.append(0, np.cumsum(sizes)), np.zeros((2, 2)), 0.0
    for drawn in product(product((0, 1), repeat=2), repeat=4):
        classes, guesses = np.array(drawn).T
        chance = joint[classes, guesses].prod()
        means = np.add.reduceat(np.eye(2)[classes], offsets[:-1]) / np.diff(offsets)[:, None]
        bags = Bags.from_arrays(
            np.zeros((4, 1)), offsets=offsets, proportions=means, task="multiclass"
        )
        value, *_ = confusion_matrix(np.eye(2)[guesses], bags)
        matrix += chance * value
        loss += chance * multiclass_log_loss(scores[guesses], bags).value
        if max(sizes) == 1:
            counted = [np.mean((classes == a) & (guesses == b)) for a in (0, 1) for b in (0, 1)]
            assert value.ravel() == pytest.approx(counted)
    assert matrix == pytest.approx(joint)
    assert loss == pytest.approx(-(joint * np.log(scores).T).sum())


def test_multiclass_error_and_log_loss_cover(rng):
    expected_error = 1 - np.trace(TRUE_CONFUSION)
    hits = np.zeros(2)
    for _ in range(200):
        chances, _, ids, proportions = multiclass_data(rng, n_instances=600)
        bags = Bags.from_arrays(chances, bags=ids, y=proportions[ids], task="multiclass")
        risk = estimate_risk(chances, bags)
        loss = multiclass_log_loss(chances, bags)
        hits += risk.low <= expected_error <= risk.high, loss.low <= TRUE_LOG_LOSS <= loss.high
    assert (np.abs(hits / 200 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200)).all()


@pytest.mark.parametrize("bag_size", [1, 2, 5])
def test_log_loss_covers_where_scores_are_overconfident(rng, bag_size):
    n_bags, accuracy, confidence = 300, 0.85, 0.995
    truth = -accuracy * np.log(confidence) - (1 - accuracy) * np.log((1 - confidence) / 2)
    ids, hits = np.repeat(np.arange(n_bags), bag_size), 0
    for _ in range(300):
        classes = rng.integers(3, size=len(ids))
        moved = np.where(rng.random(len(ids)) > accuracy, rng.integers(1, 3, size=len(ids)), 0)
        scores = np.where(np.eye(3)[(classes + moved) % 3], confidence, (1 - confidence) / 2)
        proportions = np.eye(3)[classes].reshape(n_bags, bag_size, 3).mean(axis=1)
        bags = Bags.from_arrays(scores, bags=ids, y=proportions[ids], task="multiclass")
        loss = multiclass_log_loss(scores, bags)
        hits += loss.low <= truth <= loss.high
    assert abs(hits / 300 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)


def test_confusion_of_unequal_bags_has_the_width_of_its_spread(rng):
    sizes = np.repeat([1, 10, 100], [10, 10, 4])
    joint = np.array([[0.3, 0.02, 0.03], [0.01, 0.3, 0.02], [0.02, 0.05, 0.25]])
    starts, values, widths = np.cumsum(sizes) - sizes, [], []
    for _ in range(400):
        classes, guesses = np.divmod(rng.choice(9, size=sizes.sum(), p=joint.ravel()), 3)
        means = np.add.reduceat(np.eye(3)[classes], starts) / sizes[:, None]
        bags = Bags.from_arrays(
            np.zeros((len(classes), 1)),
            offsets=np.append(starts, sizes.sum()),
            proportions=means,
            task="multiclass",
        )
        value, low, high = confusion_matrix(np.eye(3)[guesses], bags)
        values.append(value)
        widths.append((high - low) / 2 / stats.t.ppf(0.975, len(sizes) - 1))
    ratio = np.mean(widths, axis=0) / np.std(values, axis=0)
    assert (np.abs(ratio - 1) < 0.2).all()  # a deviation of 400 draws is known to 3.5 %


def _true_confusion():
    chances, classes, _, _ = multiclass_data(np.random.default_rng(1), n_instances=600_000)
    joint = np.zeros((3, 3))
    np.add.at(joint, (classes, chances.argmax(axis=1)), 1 / len(classes))
    return joint, -np.log(chances[np.arange(len(classes)), classes]).mean()


TRUE_CONFUSION, TRUE_LOG_LOSS = _true_confusion()


def test_multilabel(rng):
    scores = rng.random((3000, 2))
    labels = (rng.random((3000, 2)) < scores).astype(float)
    ids = np.repeat(np.arange(200), 15)
    proportions = labels.reshape(200, 15, 2).mean(axis=1)
    found = evaluate(scores, scores, proportions[ids], bags=ids)
    assert isinstance(found, Evaluation) and found.task == "multilabel"
    assert found.confusion.shape == (2, 2, 2)
    truth = np.mean((scores > 0.5) != labels)
    assert abs(found["error"].value - truth) < 4 * found["error"].standard_error


def test_the_calibration_error_of_few_instances_is_never_said_to_be_zero(rng):
    ids = np.repeat(np.arange(10), 6)
    for _ in range(150):
        scores = rng.beta(0.3, 0.3, size=60)
        labels = rng.random(60) < scores
        found = evaluate(scores, None, labels.reshape(10, 6).mean(axis=1)[ids], bags=ids)
        assert found["calibration_error"].high > 0.01


def test_named_columns_are_matched_to_the_classes(rng):
    """Whatever their order; other names are refused."""
    chances, _, ids, proportions = multiclass_data(rng, n_instances=900)
    y = pd.DataFrame(proportions[ids], columns=["a", "b", "c"])
    clf = unbag.BagRidgeClassifier().fit(chances, y, bags=ids)
    for frame in (y[["c", "a", "b"]], pl.from_pandas(y[["b", "c", "a"]])):
        assert clf.score(chances, frame, bags=ids) == clf.score(chances, y, bags=ids)
        found, same = (unbag.evaluate(clf, chances, each, bags=ids) for each in (frame, y))
        assert found["error"].value == same["error"].value
    with pytest.raises(BagDataError, match="one per class"):
        unbag.evaluate(clf, chances, y.rename(columns={"a": "d"}), bags=ids)
    assert clf.classes_.tolist() == ["a", "b", "c"]
