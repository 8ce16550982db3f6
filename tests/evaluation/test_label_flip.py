"""The guard against inverted labels and classes in another order."""

import numpy as np
import pytest

from unbag.bags import Bags, make_bags
from unbag.evaluation import check_flip, label_flip, repair_flip

LEVEL = 0.05


def labels_of(rng, task, n_instances, n_outputs):
    """Fair labels: zeros and ones, or one-hot classes."""
    if task == "multiclass":
        return np.eye(n_outputs)[rng.integers(0, n_outputs, n_instances)]
    return rng.integers(0, 2, (n_instances, n_outputs)).astype(float)


def scores_of(rng, labels, task, *, accuracy):
    """Scores that are right with a probability, given for all outputs or for each."""
    if task == "multiclass":
        classes, n_classes = labels.argmax(axis=1), labels.shape[1]
        wrong = (classes + rng.integers(1, n_classes, len(classes))) % n_classes
        right = rng.random(len(classes)) < np.broadcast_to(accuracy, n_classes)[classes]
        return 0.7 * np.eye(n_classes)[np.where(right, classes, wrong)] + 0.3 / n_classes
    right = rng.random(labels.shape) < accuracy
    return 0.1 + 0.8 * np.where(right, labels, 1 - labels)


def turned_outputs(rng, task, n_outputs, *, accuracy, order=None):
    """Which outputs `repair_flip` moves, on 60 bags of 10."""
    labels = labels_of(rng, task, 600, n_outputs)
    scores = scores_of(rng, labels, task, accuracy=accuracy)
    scores = scores if order is None else scores[:, order]
    if task == "binary":
        labels = labels[:, 0]
    bags = make_bags(np.zeros((600, 1)), labels, bag_size=10, seed=0)
    return ~np.isclose(repair_flip(scores, bags, level=LEVEL), scores).all(axis=0)


def allowed(n_draws):
    """Four standard errors above the level."""
    return LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / n_draws)


@pytest.fixture
def few_shuffles(monkeypatch):
    monkeypatch.setattr(label_flip, "N_SHUFFLES", 199)


TASKS = [("binary", 1), ("multilabel", 10), ("multiclass", 2), ("multiclass", 5)]


@pytest.mark.usefixtures("few_shuffles")
@pytest.mark.parametrize(("task", "n_outputs"), TASKS)
def test_scores_that_tell_nothing_are_turned_at_the_level(rng, task, n_outputs):
    chance = 1 / n_outputs if task == "multiclass" else 0.5
    turned = [turned_outputs(rng, task, n_outputs, accuracy=chance).any() for _ in range(300)]
    assert 0 < np.mean(turned) < allowed(300)


@pytest.mark.usefixtures("few_shuffles")
def test_weak_scores_the_right_way_round_are_left_alone(rng):
    turned = [turned_outputs(rng, "multiclass", 10, accuracy=0.2).any() for _ in range(60)]
    assert np.mean(turned) < allowed(60)


def test_an_inverted_label_does_not_turn_weak_ones_beside_it(rng):
    accuracy = np.array([0.1, 0.52, 0.52, 0.52])
    turned = np.array([turned_outputs(rng, "multilabel", 4, accuracy=accuracy) for _ in range(200)])
    assert turned[:, 0].all()
    assert turned[:, 1:].any(axis=1).mean() < allowed(200)


@pytest.mark.usefixtures("few_shuffles")
def test_swapped_classes_do_not_turn_weak_ones_beside_them(rng):
    accuracy = np.array([0.95, 0.95, 0.3, 0.3, 0.3])
    turned = np.array(
        [
            turned_outputs(rng, "multiclass", 5, accuracy=accuracy, order=[1, 0, 2, 3, 4])
            for _ in range(60)
        ]
    )
    assert turned[:, :2].all(axis=1).mean() > 0.9
    assert turned[:, 2:].any(axis=1).mean() < allowed(60)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_two_bags_cannot_tell(rng, task):
    for _ in range(50):
        scores = rng.random(14)
        y = np.repeat([5 / 7, 2 / 7], 7)
        if task == "multiclass":
            scores, y = (np.stack([v, 1 - v], axis=1) for v in (scores, y))
        bags = Bags.from_arrays(np.zeros((14, 1)), bags=np.arange(14) // 7, y=y)
        assert check_flip(scores, bags).p_value > 0.3


@pytest.mark.parametrize("inverted", [False, True])
def test_flip_is_found_and_repaired(rng, inverted):
    labels = labels_of(rng, "binary", 2000, 1)[:, 0]
    scores = scores_of(rng, labels, "binary", accuracy=0.9)
    bags = make_bags(np.zeros((2000, 1)), labels, bag_size=20, seed=0)
    shown = 1 - scores if inverted else scores
    found = check_flip(shown, bags)
    assert found.flipped == inverted and found.p_value < 1e-3
    np.testing.assert_allclose(repair_flip(shown, bags), scores)
    assert ("inverted" in str(found)) == inverted


def test_flip_is_left_alone_when_the_bags_cannot_tell(rng):
    scores = rng.random(200)
    bags = make_bags(np.zeros((200, 1)), np.arange(200) % 2, bag_size=20, seed=0)
    p_values = [check_flip(rng.random(200), bags).p_value for _ in range(200)]
    # Both directions are tested, so that 2.5 % is reached in 5 % of cases.
    assert np.mean(np.array(p_values) < 0.025) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)
    assert repair_flip(scores, bags, level=0.0).tolist() == scores.tolist()


def test_classes_in_another_order_are_found(rng):
    classes = rng.integers(0, 3, 3000)
    scores = 0.7 * np.eye(3)[classes] + 0.1
    bags = make_bags(np.zeros((3000, 1)), np.eye(3)[classes], bag_size=10, seed=0)
    assert not check_flip(scores, bags).flipped
    shuffled = scores[:, [2, 0, 1]]
    found = check_flip(shuffled, bags)
    assert found.flipped and found.p_value < 1e-3
    np.testing.assert_allclose(repair_flip(shuffled, bags), scores)


def test_one_inverted_label_of_two_is_found(rng):
    labels = (rng.random((2000, 2)) < 0.4).astype(float)
    scores = 0.1 + 0.8 * labels
    bags = make_bags(np.zeros((2000, 1)), labels, bag_size=10, seed=0)
    shown = np.stack([scores[:, 0], 1 - scores[:, 1]], axis=1)
    assert check_flip(shown, bags).order == (0, -2)
    np.testing.assert_allclose(repair_flip(shown, bags), scores)
