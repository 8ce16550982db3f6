"""The likelihood's gradient for boosting: against the rule, enumeration, and LightGBM itself."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from unbag import BagBatch, BagBoostingClassifier, Bags
from unbag.estimators import gradients as boosting_gradients
from unbag.estimators.gradients import (
    EXACT_BELOW,
    CountGradients,
    initial_scores,
    largest_correlation,
    scores_of_raw,
)
from unbag.posterior.labels import exact_posterior, tilted_posterior
from unbag.rules import CountLikelihood

TASKS = ["binary", "multiclass", "multilabel"]


def labelled_bags(rng, task="binary", *, sizes=None, n_classes=3, noise_variance=None):
    """Bags with the counts of labels drawn at random; some counts are extreme."""
    sizes = rng.integers(1, 7, size=15) if sizes is None else np.asarray(sizes)
    n = sizes.sum()
    if task == "multiclass":
        labels = np.eye(n_classes)[rng.integers(n_classes, size=n)]
    else:
        labels = (rng.random((n, 1 if task == "binary" else n_classes)) < 0.4).astype(float)
    starts = np.cumsum(sizes) - sizes
    proportions = np.add.reduceat(labels, starts) / sizes[:, None]
    if task == "binary":
        proportions = proportions[:, 0]
    ids = list(range(len(sizes)))
    X = rng.normal(size=(n, 2))
    return Bags(X, np.arange(n), sizes, proportions, ids, noise_variance, task)


def raw_of(rng, bags):
    return 3 * rng.normal(size=(bags.n_instances, bags.n_outputs))


def gradients_of(bags):
    return CountGradients(bags, learning_rate=0.1)


def torch_gradient(bags, raw):
    """Of the rule itself, times the number of bags, by autograd."""
    logits = torch.tensor(raw, requires_grad=True)
    noise = None if bags.noise_variance is None else torch.tensor(bags.noise_variance)
    sizes = torch.tensor(bags.sizes)
    batch = BagBatch(torch.tensor(bags.proportions), sizes, noise, task=bags.task)
    flat = logits.squeeze(-1) if bags.task == "binary" else logits
    loss = bags.n_bags * CountLikelihood()(flat, batch)
    return torch.autograd.grad(loss, logits)[0].numpy()


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize(("task", "n_classes"), [*((task, 3) for task in TASKS), ("multiclass", 2)])
def test_the_gradient_is_that_of_the_rule(rng, task, n_classes, noisy):
    noise = 0.1 * rng.random(15) if noisy else None
    bags = labelled_bags(rng, task, n_classes=n_classes, noise_variance=noise)
    raw = raw_of(rng, bags)
    found, wanted = gradients_of(bags).gradient(raw), torch_gradient(bags, raw)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)
    # and the comparison can fail
    assert not np.allclose(gradients_of(bags).gradient(1.01 * raw), wanted, rtol=1e-4)


def enumerated(scores, count):
    """Probability of each label given the count, over all labelings."""
    total, with_label = 0.0, np.zeros(len(scores))
    for labels in product([0, 1], repeat=len(scores)):
        if sum(labels) == count:
            chance = np.prod(np.where(labels, scores, 1 - scores))
            total, with_label = total + chance, with_label + chance * np.array(labels)
    return with_label / total


logits_of_a_bag = st.lists(st.floats(-12, 12), min_size=1, max_size=7)


@settings(deadline=None)
@given(st.lists(st.tuples(logits_of_a_bag, st.floats(0, 1)), min_size=1, max_size=5))
def test_the_posterior_is_that_of_all_labelings(drawn):
    """However unlikely the count, and in bags of different sizes."""
    sizes = [len(logits) for logits, _ in drawn]
    counts = [round(share * size) for (_, share), size in zip(drawn, sizes, strict=True)]
    outputs = np.array([x for logits, _ in drawn for x in logits])
    found = exact_posterior(outputs, counts, sizes, exact_below=EXACT_BELOW)
    cases = zip(drawn, counts, strict=True)
    wanted = np.concatenate([enumerated(expit(np.array(x)), count) for (x, _), count in cases])
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_unlikely_counts_of_larger_bags(rng):
    """Against sums of positive terms, which lose nothing: the law of a count without one label."""
    logits = np.concatenate([rng.normal(20, 2, size=40), rng.normal(-20, 2, size=30)])
    scores, count = expit(logits), 12  # some 28 labels are not what they seem
    wanted = []
    for i in range(70):
        law = np.ones(1)
        for x in np.delete(logits, i):
            law = np.convolve(law, [expit(-x), expit(x)])
        with_label, without = scores[i] * law[count - 1], expit(-logits[i]) * law[count]
        wanted.append(with_label / (with_label + without))
    found = exact_posterior(logits, [count], [70])
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_the_gradient_is_the_slope_of_the_likelihood(rng):
    """Against differences of the probability of the counts, over all labelings."""
    bags = labelled_bags(rng, sizes=[3, 1, 5])
    raw, counts = raw_of(rng, bags), np.rint(bags.proportions * bags.sizes)

    def loss(raw):
        total = 0.0
        for scores, count in zip(np.split(expit(raw[:, 0]), bags.starts[1:]), counts, strict=True):
            labelings = np.array(list(product([0, 1], repeat=len(scores))))
            chances = np.where(labelings, scores, 1 - scores).prod(axis=1)
            total -= np.log(chances[labelings.sum(axis=1) == count].sum())
        return total

    gradient = gradients_of(bags).gradient(raw)
    for row in range(len(raw)):
        step = np.zeros_like(raw)
        step[row] = 1e-5
        difference = (loss(raw + step) - loss(raw - step)) / 2e-5
        assert gradient[row, 0] == pytest.approx(difference, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("task", TASKS)
def test_the_curvature_is_the_information_of_gaussian_counts(rng, task):
    """Squared slopes of the expected counts over their variances, by differences."""
    bags = labelled_bags(rng, task, noise_variance=rng.random(15))
    raw = raw_of(rng, bags) / 3
    scores = scores_of_raw(raw, task)
    noise = bags.sizes**2 * bags.noise_variance
    variance = np.add.reduceat(scores * (1 - scores), bags.starts) + noise[:, None]
    _, curvature = gradients_of(bags)(raw)
    for row, column in [(0, 0), (bags.n_instances // 2, bags.n_outputs - 1)]:
        step = np.zeros_like(raw)
        step[row, column] = 1e-5
        slope = (scores_of_raw(raw + step, task) - scores_of_raw(raw - step, task)) / 2e-5
        wanted = (slope[row] ** 2 / variance[bags.bag_of_row[row]]).sum()
        assert curvature[row, column] == pytest.approx(wanted, rel=1e-6)


def test_two_classes_are_one_count(rng):
    two = labelled_bags(rng, "multiclass", n_classes=2)
    one = replace(two, proportions=two.proportions[:, 1], task="binary")
    raw = raw_of(rng, two)
    slopes, curvature = gradients_of(two)(raw)
    wanted, wanted_curvature = gradients_of(one)(raw[:, 1:] - raw[:, :1])
    np.testing.assert_allclose(slopes[:, 1:], wanted, atol=1e-10)
    np.testing.assert_allclose(curvature[:, 1:], wanted_curvature, rtol=1e-8)


def test_bags_of_one_are_logistic_regression(rng):
    bags = labelled_bags(rng, sizes=np.ones(50, int))
    raw = raw_of(rng, bags)
    slopes, curvature = gradients_of(bags)(raw)
    scores = expit(raw[:, 0])
    np.testing.assert_allclose(slopes[:, 0], scores - bags.proportions, atol=1e-12)
    np.testing.assert_allclose(curvature[:, 0], np.maximum(scores * (1 - scores), 1e-4))


def test_bags_of_one_grow_the_trees_of_lightgbm_itself(rng):
    lightgbm = pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    X = rng.normal(size=(600, 3))
    labels = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=600) > 0).astype(int)
    clf = BagBoostingClassifier(rule="count_likelihood", n_runs=1, n_estimators=30, random_state=1)
    clf.fit(X, labels)
    bags = Bags(X, np.arange(600), np.ones(600, int), labels.astype(float), list(range(600)))
    parameters = clf._parameters(gradients_of(bags), 1) | {"objective": "binary"}
    first = np.full(600, initial_scores(bags)[0])
    train_set = lightgbm.Dataset(X, labels, init_score=first, params=parameters)
    own = lightgbm.train(parameters, train_set, num_boost_round=30)
    wanted = own.predict(X, raw_score=True)
    np.testing.assert_allclose(clf.booster_.predict(X, raw_score=True), wanted, rtol=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_a_common_shift_is_undone_in_one_step(rng, task):
    """Without the correction the step would be as many times too long as bags are large."""
    bags = labelled_bags(rng, task, sizes=np.full(40, 10))
    truth = np.tile(rng.normal(size=bags.n_outputs), (bags.n_instances, 1))
    # Proportions that are no counts: as if noise were known to be next to nothing.
    expected = np.add.reduceat(scores_of_raw(truth, task), bags.starts) / 10
    proportions = expected[:, 0] if task == "binary" else expected
    bags = replace(bags, proportions=proportions, noise_variance=np.full(40, 1e-9))
    shift = np.zeros_like(truth)
    shift[:, 0] = 1e-3
    gradients = gradients_of(bags)
    slopes, curvature = gradients(truth + shift)
    flat, _ = gradients(truth)  # the variance of the counts has a slope of its own
    step = (slopes - flat)[:, 0].sum() / curvature[:, 0].sum()
    assert step == pytest.approx(1e-3, rel=0.2)
    uncorrected = gradients.gradient(truth + shift) - gradients.gradient(truth)
    assert uncorrected[:, 0].sum() / curvature[:, 0].sum() > 8e-3


def test_nothing_is_corrected_at_the_best_shift(rng):
    bags = labelled_bags(rng)
    gradients, raw = gradients_of(bags), raw_of(rng, bags)
    for _ in range(200):
        raw = raw - gradients.gradient(raw).sum() / bags.n_instances
    np.testing.assert_allclose(gradients(raw)[0], gradients.gradient(raw), atol=1e-10)
    assert not np.allclose(gradients(raw + 1)[0], gradients.gradient(raw + 1), atol=1e-3)


def test_large_bags_have_nearly_the_gradient_of_the_rule(rng):
    """Their posteriors are of second order; tilted ones alone would not do."""
    bags = labelled_bags(rng, sizes=[60, 80, 70])
    raw = raw_of(rng, bags) / 3
    found, wanted = gradients_of(bags).gradient(raw), torch_gradient(bags, raw)
    np.testing.assert_allclose(found, wanted, atol=2e-4)
    assert not np.array_equal(found, wanted)
    counts = bags.sizes * bags.proportions
    tilted = expit(raw[:, 0]) - tilted_posterior(raw[:, 0], counts, bags.sizes)
    assert np.abs(tilted - wanted[:, 0]).max() > 2e-3


def test_tilts_of_earlier_scores_change_nothing(rng):
    bags = labelled_bags(rng, sizes=[60, 8, 70])
    gradients, raw = gradients_of(bags), raw_of(rng, bags)
    gradients.gradient(-raw)
    np.testing.assert_allclose(gradients.gradient(raw), gradients_of(bags).gradient(raw), atol=1e-7)


def test_some_bags_at_a_time_give_the_same(rng, monkeypatch):
    bags = labelled_bags(rng)
    raw = raw_of(rng, bags)
    at_once = gradients_of(bags).gradient(raw)
    monkeypatch.setattr("unbag.posterior.labels.NUMBERS_AT_ONCE", 20)
    np.testing.assert_allclose(gradients_of(bags).gradient(raw), at_once, rtol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_sure_scores_and_impossible_counts_stay_finite(rng, task):
    bags = labelled_bags(rng, task)
    raw = 800 * np.sign(raw_of(rng, bags))
    gradients = gradients_of(bags)
    slopes, curvature = gradients(raw)
    assert np.isfinite(slopes).all() and np.abs(slopes).max() <= 3
    assert (curvature >= gradients.smallest_curvature).all() and np.isfinite(curvature).all()


def test_features_that_bags_share_are_found(rng):
    bags = labelled_bags(rng, sizes=np.full(200, 5))
    assert largest_correlation(bags) < 0.2
    shared = replace(bags, X=np.column_stack([bags.X, np.repeat(rng.normal(size=200), 5)]))
    assert largest_correlation(shared) == pytest.approx(1, abs=1e-9)
    shared.X[0] = np.nan  # a missing value hides nothing
    assert largest_correlation(shared) == pytest.approx(1, abs=0.02)
    assert largest_correlation(labelled_bags(rng, sizes=np.ones(9, int))) == 0


def test_bags_of_neighbours_do_not_make_it_diverge(rng, monkeypatch):
    pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    X = rng.normal(size=(4000, 3))
    X = X[np.argsort(X[:, 0] + 0.3 * rng.normal(size=4000))]
    truth = expit(3 * X[:, 0] + logit(0.4))
    bags = np.repeat(np.arange(40), 100)
    y = (rng.random(4000) < truth).reshape(40, 100).mean(axis=1)[bags]

    def distance_to_the_truth():
        settings = {"n_estimators": 50, "n_runs": 1, "reg_lambda": 0.1, "random_state": 0}
        clf = BagBoostingClassifier(rule="count_likelihood", **settings)
        return np.abs(clf.fit(X, y, bags=bags).predict_proba(X)[:, 1] - truth).mean()

    assert distance_to_the_truth() < 0.1
    monkeypatch.setattr(boosting_gradients, "largest_correlation", lambda data: 0.0)
    assert distance_to_the_truth() > 0.15
