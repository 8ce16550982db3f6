"""Laws at which intervals are hardest: they cover, or there is none and the reason is given."""

import numpy as np
import pytest
from benchmarks.populations import World, make_world
from sklearn.model_selection import GridSearchCV

from unbag import BagKFold, BagRidgeClassifier, BagTarget, cross_fit_risk, evaluate
from unbag.bags import Bags
from unbag.evaluation import compare_models, score_metrics
from unbag.evaluation.confusion import (
    DECISION_METRICS,
    decision_intervals,
    estimate_errors,
    no_interval,
)
from unbag.evaluation.intervals import ResidualMoments
from unbag.evaluation.positives import fit_positives
from unbag.evaluation.risk import risk_from_residuals
from unbag.evaluation.score_metrics import SCORE_METRICS, score_metric

N_DRAWS = 300
# Four standard errors of a share of 0.95.
LEAST = 0.95 - 4 * np.sqrt(0.95 * 0.05 / N_DRAWS)
# True positives 0.1 %, false negatives 0.4 %, false positives 0.645 %.
RARE = World(np.array([0.2, 0.8]), np.array([0.99255, 0.00745]), np.array([0.00403, 0.1342]))


def coverage(estimate, truth):
    found = [estimate() for _ in range(N_DRAWS)]
    return np.mean([e.low <= truth <= e.high for e in found])


@pytest.mark.parametrize("flip", [0.0, 5e-4])
def test_log_loss_of_an_accurate_under_confident_classifier(rng, flip):
    scores = np.linspace(0.02, 0.98, 80)
    world = World(scores, np.full(80, 1 / 80), np.where(scores > 0.5, 1 - flip, flip))
    chances = np.where(scores > 0.5, scores, 1 - scores)
    truth = -np.mean((1 - flip) * np.log(chances) + flip * np.log(1 - chances))

    def estimate():
        positives = fit_positives(world.draw(rng, np.full(200, 50)))
        return score_metric(SCORE_METRICS["log_loss"](positives), positives, highest=np.inf)

    assert coverage(estimate, truth) > LEAST


@pytest.mark.parametrize("n_bags", [60, 200])
def test_rare_positives_get_a_reason_instead_of_an_interval(rng, n_bags):
    for _ in range(20):
        with np.errstate(all="ignore"):
            found = decision_intervals(estimate_errors(RARE.draw(rng, np.full(n_bags, 25))))
        for name in ("precision", "recall", "f1", "balanced_error"):
            assert found[name].headline == "cannot tell" or np.isnan(found[name].value)
            assert not found[name].has_interval
        assert found["specificity"].has_interval and found["false_positives"].has_interval


def test_enough_rare_positives_get_an_interval_that_covers(rng):
    truth, recall = 0.2, {"recall": DECISION_METRICS["recall"]}

    def estimate():
        errors = estimate_errors(RARE.draw(rng, np.full(400, 200)))
        return decision_intervals(errors, metrics=recall)["recall"]

    assert not no_interval(estimate_errors(RARE.draw(rng, np.full(400, 200))))
    assert coverage(estimate, truth) > LEAST


def test_a_rare_class_is_told_to_the_user(rng):
    labels, ids = (rng.random(1500) < 0.005).astype(float), np.repeat(np.arange(60), 25)
    found = evaluate(rng.random(1500), None, labels.reshape(60, 25).mean(axis=1)[ids], bags=ids)
    assert found["recall"].note == found["average_precision"].note == "too few positives"
    assert "too few positives" in str(found)


def one_sided(rng, n_bags):
    world = World(np.array([0.1, 0.9]), np.array([0.5, 0.5]), np.array([0.1, 1.0]))
    return world.draw(rng, np.full(n_bags, 50))


@pytest.mark.parametrize("known", [False, True])
def test_calibration_error_of_tied_scores_from_few_bags(rng, monkeypatch, known):
    """A residual variance that came out too low makes gaps too large and their errors too small.

    Intervals that take the variance for known miss every sixth truth, and are rejected.
    """
    draws = score_metrics._draws
    if known:
        monkeypatch.setattr(score_metrics, "_draws", lambda *parts: draws(*parts[:2], 1e9))

    def estimate():
        return score_metrics.calibration_error(fit_positives(one_sided(rng, 8)), n_bins=5)

    assert (coverage(estimate, 0.05) > LEAST) != known


def test_one_sided_errors_from_four_bags(rng):
    def estimate():
        table = one_sided(rng, 4)
        residuals = (table.bag_mean(table.hard) - table.proportions)[:, None]
        return risk_from_residuals(residuals, table.sizes, table.noise, law=ResidualMoments())

    assert coverage(estimate, 0.05) > LEAST


def test_strong_laplace_noise(rng):
    world = make_world(0.1)

    def estimate():
        table = world.draw(rng, np.full(50, 5), noise=8.0)
        residuals = (table.bag_mean(table.hard) - table.proportions)[:, None]
        return risk_from_residuals(residuals, table.sizes, table.noise, law=ResidualMoments())

    assert coverage(estimate, 0.1) > LEAST


def test_two_models_of_several_classes_differ_as_much_as_labels_say(rng):
    """On bags of one the standard error is that of the mean of the losses' differences."""
    classes = rng.integers(5, size=2000)
    guesses = [
        np.where(rng.random(2000) < share, rng.integers(5, size=2000), classes)
        for share in (0.2, 0.3)
    ]
    labels = np.eye(5)[classes]
    bags = Bags.from_arrays(np.zeros((2000, 1)), offsets=np.arange(2001), proportions=labels)
    found = compare_models(*(np.eye(5)[g] for g in guesses), bags).difference
    losses = (guesses[0] != classes).astype(float) - (guesses[1] != classes)
    assert found.value == pytest.approx(losses.mean())
    # What the scores say of the square is added where the bags show more, never taken away.
    assert 1 <= found.standard_error / (losses.std() / 2000**0.5) < 1.1


def test_a_search_can_be_cross_fitted_as_a_whole(rng):
    X = rng.normal(size=(600, 3))
    labels, ids = X[:, 0] > 0, np.repeat(np.arange(60), 10)
    y = BagTarget(ids, labels.reshape(60, 10).mean(axis=1)[ids])
    search = GridSearchCV(BagRidgeClassifier(), {"penalties": [[0.1], [10.0]]}, cv=BagKFold(3))
    assert cross_fit_risk(search, X, y).value < 0.2
