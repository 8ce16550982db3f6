"""Natural groups: bounds by brute force, expectations and intervals by simulation."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from sklearn import metrics as sk

import unbag
from unbag import Bags
from unbag.errors import BagDataError
from unbag.evaluation.checks import explain_grouping, find_grouping
from unbag.evaluation.natural import (
    evaluate_natural,
    explained_deviance,
    label_metrics,
    metric_bounds,
)
from unbag.posterior import bag_posterior

SIZES, COUNTS = [3, 1, 4, 2], [1, 1, 2, 0]


def small_bags():
    offsets = np.concatenate([[0], np.cumsum(SIZES)])
    return Bags.from_arrays(np.zeros(sum(SIZES)), offsets=offsets, counts=COUNTS)


def every_labeling():
    per_bag = [
        [bits for bits in product([0, 1], repeat=size) if sum(bits) == count]
        for size, count in zip(SIZES, COUNTS, strict=True)
    ]
    return [np.concatenate(parts) for parts in product(*per_bag)]


def reference(scores, labels):
    """The metrics by scikit-learn."""
    hard = scores > 0.5
    return {
        "error": np.mean(hard != labels),
        "balanced_error": 1 - sk.balanced_accuracy_score(labels, hard),
        "precision": sk.precision_score(labels, hard, zero_division=np.nan),
        "recall": sk.recall_score(labels, hard),
        "specificity": sk.recall_score(1 - labels, ~hard),
        "f1": sk.f1_score(labels, hard),
        "auc": sk.roc_auc_score(labels, scores),
        "brier": sk.brier_score_loss(labels, scores),
        "log_loss": sk.log_loss(labels, scores),
    }


@pytest.mark.parametrize("kind", ["plain", "ties", "one class predicted"])
def test_bounds_are_the_extremes_over_all_labelings(kind, rng):
    scores = rng.random(sum(SIZES))
    if kind == "ties":
        scores = np.round(scores * 3 + 0.5) / 4
    if kind == "one class predicted":
        scores /= 2.1
    found = evaluate_natural(scores, small_bags())
    values = [reference(scores, labels) for labels in every_labeling()]
    assert list(found) == list(values[0])
    for name in found:
        own = np.array([value[name] for value in values])
        assert [found[name].low, found[name].high] == pytest.approx(
            [own.min(), own.max()], nan_ok=True
        )
        assert not found[name].if_right < found[name].low - 1e-12
        assert not found[name].if_right > found[name].high + 1e-12


def test_errors_of_a_bag_follow_duncan_and_davis():
    for size in range(1, 6):
        for n, m in product(range(size + 1), repeat=2):
            scores = np.repeat([0.9, 0.1], [m, size - m])
            bags = Bags.from_arrays(np.zeros(size + 1), offsets=[0, size, size + 1], counts=[n, 0])
            found = evaluate_natural(np.append(scores, 0.1), bags)["error"]
            wanted = np.array([abs(n - m), min(n + m, 2 * size - n - m)])
            assert [found.low, found.high] == pytest.approx(wanted / (size + 1))


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_if_right_is_the_expectation_given_the_counts_whatever_the_bag_effects(shift, rng):
    scores = rng.uniform(0.1, 0.9, sum(SIZES))
    effects = shift * np.repeat(rng.normal(size=len(SIZES)), SIZES)
    odds = scores / (1 - scores) * np.exp(effects)
    labelings = every_labeling()
    weights = np.array([np.prod(odds[labels == 1]) for labels in labelings])
    values = [reference(scores, labels) for labels in labelings]
    found = evaluate_natural(scores, small_bags())
    for name in found:
        wanted = np.average([value[name] for value in values], weights=weights)
        assert found[name].if_right == pytest.approx(wanted)


CLASS_COUNTS = {
    "multiclass": [[1, 1, 1], [0, 0, 1], [2, 2, 0]],
    "multilabel": [[1, 3, 2], [0, 0, 1], [2, 1, 4]],
}


def class_bags(task):
    sizes = np.array([3, 1, 4])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    proportions = np.array(CLASS_COUNTS[task]) / sizes[:, None]
    return Bags.from_arrays(np.zeros(8), offsets=offsets, proportions=proportions, task=task)


def every_class_labeling(bags, task):
    """All label matrices with the counts of the bags."""
    rows = list(product([0, 1], repeat=3) if task == "multilabel" else np.eye(3, dtype=int))
    counts = np.rint(bags.proportions * bags.sizes[:, None]).astype(int)
    per_bag = [
        [found for found in product(rows, repeat=size) if (np.sum(found, axis=0) == own).all()]
        for size, own in zip(bags.sizes, counts, strict=True)
    ]
    return [np.concatenate(parts) for parts in product(*per_bag)]


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_bounds_and_expectations_of_several_outputs_by_all_labelings(task, rng):
    bags, scores = class_bags(task), rng.dirichlet(np.ones(3), size=8)
    if task == "multilabel":
        scores = rng.uniform(0.1, 0.9, size=(8, 3))
    hard = np.eye(3)[scores.argmax(axis=1)] if task == "multiclass" else scores > 0.5
    labelings = every_class_labeling(bags, task)
    odds = scores if task == "multiclass" else scores / (1 - scores)
    weights = [np.prod(odds[labels == 1]) for labels in labelings]
    wrong = {"multiclass": lambda y: np.mean((hard * y).sum(axis=1) == 0)}
    wrong["multilabel"] = lambda y: np.mean(hard != y)
    metrics = {"error": wrong[task]}
    for i in range(3):
        metrics[f"recall[{i}]"] = lambda y, i=i: sk.recall_score(y[:, i], hard[:, i])
        metrics[f"f1[{i}]"] = lambda y, i=i: sk.f1_score(y[:, i], hard[:, i])
        metrics[f"auc[{i}]"] = lambda y, i=i: sk.roc_auc_score(y[:, i], scores[:, i])
        metrics[f"brier[{i}]"] = lambda y, i=i: np.mean((y[:, i] - scores[:, i]) ** 2)
    found = unbag.evaluate(scores, bags, grouping="natural")
    for name, metric in metrics.items():
        values = [metric(labels) for labels in labelings]
        assert [found[name].low, found[name].high] == pytest.approx([min(values), max(values)])
        assert found[name].if_right == pytest.approx(np.average(values, weights=weights)), name
    assert len(found.calibration) == 3 and found.effects is None
    assert "effects" not in found.verdict and found.plot_calibration() is not None


def test_two_classes_explain_as_much_as_one_label(rng):
    scores, _, bags = world(rng)
    both = np.column_stack([1 - bags.proportions, bags.proportions])
    of_classes = replace(bags, proportions=both, task="multiclass")
    one = evaluate_natural(scores, bags)
    two = evaluate_natural(np.column_stack([1 - scores, scores]), of_classes)
    assert vars(two.explained_deviance) == pytest.approx(vars(one.explained_deviance))
    for end in ("low", "high", "if_right"):
        assert getattr(two["error"], end) == pytest.approx(getattr(one["error"], end))
        assert getattr(two["recall[1]"], end) == pytest.approx(getattr(one["recall"], end))


def world(rng, *, n_bags=40, size=15, effect=0.0, hidden=0.0, slope=1.0):
    """Groups that differ in an observed feature, in a hidden one, and by effects of their own."""
    x = rng.normal(size=(n_bags, 1)) + rng.normal(size=(n_bags, size))
    bag_effects = effect * rng.normal(size=(n_bags, 1))
    within = hidden * rng.normal(size=(n_bags, size))
    labels = rng.random((n_bags, size)) < expit(1.5 * x + bag_effects + within)
    bags = Bags.from_arrays(
        x.reshape(-1, 1), offsets=np.arange(0, n_bags * size + 1, size), counts=labels.sum(axis=1)
    )
    return expit(slope * 1.5 * x).ravel(), labels.ravel().astype(float), bags


WORLDS = {
    "features only": {},
    "bag effects": {"effect": 1.5},
    "hidden features": {"effect": 1.0, "hidden": 1.0},
    "wrong probabilities": {"slope": 3.0},
}


def gaps_of(rng, n_draws=60, **options):
    """If right minus true, of error and AUC; whether all bounds hold."""
    gaps, hold = [], []
    for _ in range(n_draws):
        scores, labels, bags = world(rng, **options)
        found = metric_bounds(scores, bags, bag_posterior(scores, bags))
        true = label_metrics(scores, labels)
        hold.append(all(found[m].low - 1e-9 <= true[m] <= found[m].high + 1e-9 for m in found))
        gaps.append([found[m].if_right - true[m] for m in ("error", "brier", "auc")])
    return np.array(gaps), all(hold)


def standard_errors(gaps):
    return np.abs(gaps.mean(axis=0)) / (gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps)))


@pytest.mark.statistical
@pytest.mark.parametrize("name", WORLDS)
def test_bounds_hold_in_every_world(name, rng):
    gaps, hold = gaps_of(rng, **WORLDS[name])
    assert hold
    if name in ("features only", "bag effects"):
        assert (standard_errors(gaps) < 4).all()
    if name == "wrong probabilities":  # the check sees scores that are not right
        assert standard_errors(gaps)[1] > 4


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["features only", "bag effects", "wrong probabilities"])
def test_the_interval_of_explained_deviance_covers(name, rng):
    scores, _, bags = world(rng, n_bags=30_000, **WORLDS[name])
    truth = explained_deviance(scores, bags).value
    draws = [world(rng, n_bags=50, **WORLDS[name]) for _ in range(300)]
    found = [explained_deviance(scores, bags) for scores, _, bags in draws]
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert 0.90 < covered < 0.99  # four standard errors of 300 draws from 95 %


@pytest.mark.statistical
def test_blocks_widen_the_interval_and_cover(rng):
    covered, narrow = [], []
    truth = None
    for n_blocks in [4000, *[15] * 200]:
        effects = np.repeat(1.5 * rng.normal(size=n_blocks), 10)[:, None]
        x = rng.normal(size=(len(effects), 1)) + rng.normal(size=(len(effects), 20))
        counts = (rng.random(x.shape) < expit(x + effects)).sum(axis=1)
        offsets = np.arange(0, x.size + 1, 20)
        bags = Bags.from_arrays(x.reshape(-1, 1), offsets=offsets, counts=counts)
        blocks = np.repeat(np.arange(n_blocks), 10)
        ends = [explained_deviance(expit(x).ravel(), bags, units) for units in (blocks, None)]
        if truth is None:
            truth = ends[0].value
            continue
        covered.append(ends[0].low <= truth <= ends[0].high)
        narrow.append(ends[1].low <= truth <= ends[1].high)
    assert np.mean(covered) > 0.88
    assert np.mean(narrow) < np.mean(covered) - 0.05  # bags of one block are no independent draws


def test_calibration_of_groups_and_the_verdict(rng):
    scores, _, bags = world(rng, n_bags=80)
    found = evaluate_natural(scores, bags)
    [curve] = found.calibration
    inside = (curve.low <= curve.x) & (curve.x <= curve.high)
    assert len(curve.x) == 10 and inside.mean() >= 0.7
    assert found.effects.p_value > 0.001
    scores, _, bags = world(rng, n_bags=80, effect=2.0)
    assert "more than the probabilities imply" in evaluate_natural(scores, bags).verdict


def test_evaluate_never_shows_pairwise_numbers_for_natural_groups(rng):
    scores, _, bags = world(rng)
    by_name = unbag.evaluate(scores, bags, grouping="natural")
    found = unbag.evaluate(scores, bags, grouping="auto")
    assert type(found) is type(by_name)
    assert found.grouping.startswith("Bags are treated as natural groups: ")
    text = str(found)
    assert "always between" in text and "interval" in text and found.grouping[:60] in text
    assert set(found.to_dict()) >= {"bounds", "explained_deviance", "bag_effects", "grouping"}
    assert found.to_frame().loc["error", "low"] == found["error"].low
    assert found.plot_calibration() is not None
    with pytest.raises(KeyError, match="no metric 'accuracy'"):
        found["accuracy"]


def test_auto_keeps_random_groups_and_says_so(rng):
    x = rng.normal(size=(60, 20))
    labels = rng.random(x.shape) < expit(2 * x)
    ids, y = np.repeat(np.arange(60), 20), np.repeat(labels.mean(axis=1), 20)
    found = unbag.evaluate(expit(2 * x).ravel(), x.reshape(-1, 1), y, bags=ids, grouping="auto")
    assert found.grouping.startswith("Bags are treated as random groups")
    assert "random groups" in str(found) and "error" in found.estimates


def test_auto_reads_features_of_frames_with_strings(rng):
    pd = pytest.importorskip("pandas")
    town = np.repeat(["a", "b", "c", "d"] * 10, 20)
    mixed = rng.permutation(town)
    y = np.repeat(rng.binomial(20, 0.5, 40) / 20, 20)
    ids = np.repeat(np.arange(40), 20)
    half = rng.random(800)
    for column, kind in ((town, "NaturalEvaluation"), (mixed, "Evaluation")):
        frame = pd.DataFrame({"town": column, "gap": np.where(rng.random(800) < 0.1, np.nan, 1.0)})
        found = unbag.evaluate(half, frame, y, bags=ids, grouping="auto")
        assert type(found).__name__ == kind


def test_gaps_in_features_are_filled_and_bags_of_one_are_random(rng):
    x = rng.normal(size=(600, 1))
    x[::7] = np.nan
    counts = rng.binomial(20, 0.5, 30)
    bags = Bags.from_arrays(np.zeros(600), offsets=np.arange(0, 601, 20), counts=counts)
    assert find_grouping(unbag.evaluation.checks.with_features(bags, x)) == "random"
    single = Bags.from_arrays(np.zeros(4), bags=range(4), y=[0, 1, 1, 0])
    assert explain_grouping(single) == (
        "random",
        "Bags of one instance are treated as random groups.",
    )


def test_hard_predictions_get_bounds_only():
    found = evaluate_natural(np.array([1, 0, 0, 1, 1, 1, 0, 0, 0, 1.0]), small_bags())
    assert np.isnan(found["error"].if_right) and found.effects is None
    assert "only the bounds" in found.verdict


def test_bags_without_a_positive_have_bounds(rng):
    bags = Bags.from_arrays(np.zeros(8), offsets=[0, 4, 8], counts=[0, 0])
    found = evaluate_natural(rng.random(8), bags)
    assert found["error"].low == found["error"].high
    assert np.isnan(found["recall"].low) and "not defined" in str(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grouping": "clustered"}, "grouping must be"),
        ({"confidence": 1.5}, "confidence"),
        ({"n_bins": 0}, "n_bins"),
        ({"blocks": [1, 2, 3]}, "blocks must have one value per bag"),
        ({"blocks": {0: "a"}}, "no block for bag"),
        ({"scores": np.full(10, 2.0)}, "probabilities in"),
        ({"scores": np.full(9, 0.5)}, "one row per instance"),
    ],
)
def test_malformed_arguments(change, words):
    options = {"scores": np.full(10, 0.3), "grouping": "natural"} | change
    with pytest.raises(ValueError, match=words):
        unbag.evaluate(options.pop("scores"), small_bags(), **options)


def test_noise_and_rounding_are_refused_and_smoothness_for_several_classes():
    half = np.full((40, 1), 0.5)
    ids = np.repeat([0, 1], 20)
    noisy = Bags.from_arrays(half, bags=ids, proportions=[0.4, 0.61], noise_variance=0.01)
    several = Bags.from_arrays(half, bags=ids, proportions=[[0.5, 0.5], [0.25, 0.75]])
    with pytest.raises(BagDataError, match="Noisy or rounded"):
        unbag.evaluate(half, noisy, grouping="natural")
    with pytest.raises(BagDataError, match="Evaluate one of them against the rest"):
        unbag.evaluate(np.full((40, 2), 0.5), several, grouping="natural", smoothness=0.5)
