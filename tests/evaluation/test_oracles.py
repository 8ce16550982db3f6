"""Independent oracles: enumeration, symmetries, and scikit-learn on bags of one."""

from itertools import product

import numpy as np
import pytest
from benchmarks.populations import World
from scipy import stats
from scipy.special import expit
from sklearn import metrics

from unbag import evaluate, plan_bags
from unbag.bags import Bags
from unbag.evaluation import (
    compare_models,
    estimate_risk,
    evaluate_bags,
    pairwise_value,
    positives,
)
from unbag.evaluation.positives import fit_positives
from unbag.evaluation.score_metrics import metrics_of_scores
from unbag.evaluation.weighting import weighted_fit
from unbag.planning import debiased_risk_certificate


def bags_of(labels, sizes, **options):
    offsets = np.append(0, np.cumsum(sizes))
    shape = (-1,) + (1,) * (labels.ndim - 1)
    means = np.add.reduceat(labels, offsets[:-1]) / np.reshape(sizes, shape)
    return Bags.from_arrays(
        np.zeros((len(labels), 1)), offsets=offsets, proportions=means, **options
    )


def outcomes(size, law):
    """Every sum of so many instance residuals in {-1, 0, 1}, with its chance."""
    chances = np.ones(1)
    for _ in range(size):
        chances = np.convolve(chances, law)
    return zip(np.arange(-size, size + 1) / size, chances, strict=True)


@pytest.mark.parametrize("law", [(0.1, 0.7, 0.2), (0.0, 0.4, 0.6), (0.3, 0.0, 0.7)])
def test_very_unequal_noisy_bags_are_unbiased_by_enumeration(law):
    sizes, noise = np.array([1.0, 2.0, 9.0]), np.array([0.3, 0.0, 0.02])
    weights, shares = np.array([0.2, 1.0, 3.0]), np.array([1.0, 5.0, 2.0])
    each = [
        [(r + s * np.sqrt(n), p / 2) for r, p in outcomes(int(k), law) for s in (-1, 1)]
        for k, n in zip(sizes, noise, strict=True)
    ]
    expected = wrong = 0.0
    for cell in product(*each):
        residuals, chance = np.array([r for r, _ in cell]), np.prod([p for _, p in cell])
        expected += chance * weighted_fit(residuals[:, None], sizes, noise, weights, shares).risk
        wrong += chance * pairwise_value(residuals, sizes)  # as if there were no noise
    assert expected == pytest.approx(1 - law[1])
    assert abs(wrong - (1 - law[1])) > 0.05


def test_bags_of_one_give_the_metrics_of_labels(rng):
    scores = rng.choice([0.0, 0.1, 0.3, 0.5, 0.500001, 0.7, 1.0], 300)
    labels = (rng.random(300) < 0.2 + 0.6 * scores).astype(float)
    hard = scores > 0.5
    found = evaluate_bags(scores, bags_of(labels, np.ones(300, int)))
    expected = {
        "error": np.mean(hard != labels),
        "brier": np.mean((scores - labels) ** 2),
        "auc": metrics.roc_auc_score(labels, scores),
        "average_precision": metrics.average_precision_score(labels, scores),
        "log_loss": metrics.log_loss(labels, np.clip(scores, 1e-15, 1 - 1e-15)),
        "precision": metrics.precision_score(labels, hard),
        "recall": metrics.recall_score(labels, hard),
        "f1": metrics.f1_score(labels, hard),
        "balanced_error": 1 - metrics.balanced_accuracy_score(labels, hard),
    }
    assert {name: found[name].value for name in expected} == pytest.approx(expected)
    assert found.confusion == pytest.approx(metrics.confusion_matrix(labels, hard) / 300)


def ends(estimate):
    return [estimate.value, estimate.low, estimate.high]


def test_swapping_the_classes_changes_no_symmetric_metric(rng):
    sizes = rng.integers(1, 60, 50)
    scores = rng.random(sizes.sum())
    labels = (rng.random(len(scores)) < scores).astype(float)
    first = evaluate_bags(scores, bags_of(labels, sizes))
    second = evaluate_bags(1 - scores, bags_of(1 - labels, sizes))
    for name in ("error", "brier", "log_loss", "auc", "balanced_error"):
        assert ends(first[name]) == pytest.approx(ends(second[name]), abs=1e-8)
    assert ends(first["recall"]) == pytest.approx(ends(second["specificity"]), abs=1e-8)
    assert abs(first["precision"].value - second["precision"].value) > 1e-3


def test_two_classes_have_the_error_of_a_binary_task(rng):
    sizes = rng.integers(1, 40, 30)
    scores = rng.random(sizes.sum())
    labels = (rng.random(len(scores)) < scores).astype(float)
    one = estimate_risk(scores, bags_of(labels, sizes), weights="size")
    pairs = np.stack([1 - labels, labels], axis=1)
    data = bags_of(pairs, sizes, task="multiclass")
    two = estimate_risk(np.stack([1 - scores, scores], axis=1), data, weights="size")
    assert two.value == pytest.approx(one.value)


@pytest.mark.parametrize("score", [0.3, 0.5])
def test_scores_that_are_all_alike_rank_and_cost_as_the_prior_says(rng, score):
    """The sample's prior is all that varies, with the deviation of a binomial share."""
    deviation, covered = np.sqrt(0.4 * 0.6 / 200), []
    cost = np.log(1 / score - 1)  # what one positive more adds to the log loss
    for _ in range(300):
        labels = (rng.random(200) < 0.4).astype(float)
        found = evaluate_bags(np.full(200, score), bags_of(labels, np.full(10, 20)))
        precision, loss = found["average_precision"], found["log_loss"]
        assert precision.value == pytest.approx(labels.mean())
        assert precision.standard_error == pytest.approx(deviation, rel=0.2)
        assert loss.standard_error == pytest.approx(cost * precision.standard_error)
        covered.append(loss.low <= -np.log(1 - score) + 0.4 * cost <= loss.high)
    assert np.mean(covered) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.parametrize(("n_classes", "sizes"), [(3, [30] * 7), (4, [2] * 4), (5, [5] * 7)])
def test_equal_shares_of_all_classes_have_a_log_loss_without_doubt(rng, n_classes, sizes):
    for _ in range(30):
        labels = np.eye(n_classes)[rng.integers(n_classes, size=sum(sizes))]
        found = evaluate_bags(np.full(labels.shape, 1 / n_classes), bags_of(labels, sizes))
        assert found["log_loss"].value == pytest.approx(np.log(n_classes))
        assert found["log_loss"].standard_error == pytest.approx(0, abs=1e-7)


def test_scores_that_are_all_one_half_have_a_log_loss_without_doubt(rng):
    labels = (rng.random(400) < 0.3).astype(float)
    found = evaluate_bags(np.full(400, 0.5), bags_of(labels, np.full(40, 10)))["log_loss"]
    assert ends(found) == pytest.approx([np.log(2)] * 3)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_bags_of_one_class_have_the_error_that_is_plain(rng, label):
    scores, labels = rng.random(1000), np.full(1000, label)
    found = evaluate(scores, None, labels, bags=np.repeat(np.arange(50), 20))
    truth = np.mean((scores > 0.5) != label)
    assert found["error"].low < truth < found["error"].high
    assert found["auc"].headline == "not defined"


def test_models_that_are_the_same_do_not_differ(rng):
    scores, labels = rng.random(400), (rng.random(400) < 0.5).astype(float)
    found = compare_models(scores, scores, bags_of(labels, np.full(40, 10)))
    assert ends(found.difference) == pytest.approx([0, 0, 0])
    assert found.p_value == 1 and "do not differ" in str(found)


def test_labels_wrong_together_are_covered(rng):
    """Four labels of which all are wrong or none: bags then tell as little as of one label."""
    hits = 0
    for _ in range(200):
        labels = (rng.random((800, 4)) < 0.4).astype(float)
        wrong = rng.random(800) < 0.1
        found = estimate_risk(
            np.where(wrong[:, None], 1 - labels, labels),
            bags_of(labels, np.full(40, 20), task="multilabel"),
        )
        hits += found.low <= 0.1 <= found.high
    assert hits / 200 > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)


@pytest.mark.parametrize("blind", [False, True])
def test_average_precision_of_a_classifier_that_learned_the_inverse(rng, monkeypatch, blind):
    """A working law that knows of no positives is rejected."""
    normal = stats.norm.ppf((np.arange(21) + 0.5) / 21)
    world = World(expit(3 * normal), np.full(21, 1 / 21), expit(-3 * normal))
    labels, scores, weights = world.labelled()
    truth = metrics.average_precision_score(labels, scores, sample_weight=weights)
    if blind:
        monkeypatch.setattr(positives, "working_chances", lambda *_: np.full(21, 1e-4))
    fits = [fit_positives(world.draw(rng, np.full(50, 20))) for _ in range(300)]
    found = [metrics_of_scores(fit)["average_precision"] for fit in fits]
    covered = np.mean([e.low <= truth <= e.high for e in found])
    assert (covered > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)) != blind


@pytest.mark.parametrize(("n_bags", "size"), [(20, 2), (50, 10), (200, 100), (500, 1)])
def test_certificates_hold_at_every_error_and_for_errors_of_one_kind(rng, n_bags, size):
    for error, one_sided in product((1e-4, 0.003, 0.02, 0.1, 0.4), (False, True)):
        wrong = rng.binomial(size, error, (400, n_bags))
        residuals = (wrong if one_sided else 2 * rng.binomial(wrong, 0.5) - wrong) / size
        values = (residuals**2).mean(axis=1) + (size - 1) * residuals.var(axis=1, ddof=1)
        limits = {v: debiased_risk_certificate(v, n_bags, bag_size=size) for v in np.unique(values)}
        below = sum(limits[v] < error for v in values)
        assert stats.binom.sf(below - 1, 400, 0.05) > 1e-4


def test_a_plan_keeps_its_promise_for_the_worst_hypothesis_that_fits(rng):
    """Thresholds on a line; of those that explain every bag the farthest from the truth counts."""
    edges, truth = np.linspace(0, 1, 51), 0.5
    plan = plan_bags(error=0.1, bag_size=5, n_hypotheses=len(edges))
    failures = {plan.n_bags: 0, 3: 0}
    for n_bags in failures:
        for _ in range(200):
            x = rng.random((n_bags, 5))
            counts = (x[:, :, None] > edges).sum(axis=1)
            fits = (counts == (x > truth).sum(axis=1)[:, None]).all(axis=0)
            failures[n_bags] += np.abs(edges[fits] - truth).max() > 0.1
    assert failures[plan.n_bags] / 200 <= 0.05
    assert failures[3] / 200 > 0.05  # fewer bags would not do
