"""Metrics from bags against scikit-learn's from labels, their gradients and their intervals."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.populations import make_world, unequal_sizes
from scipy import integrate, special
from sklearn import metrics

from unbag.bags import make_bags
from unbag.evaluation.confusion import DECISION_METRICS, decision_intervals, estimate_errors
from unbag.evaluation.positives import Positives, fit_positives, score_table
from unbag.evaluation.score_metrics import (
    SCORE_METRICS,
    calibration_curve,
    calibration_error,
    roc_curve,
    score_metric,
)
from unbag.evaluation.spread import Spread, studentised_interval


def exact_positives(world):
    """The positives as labels would show them, on the simulated population itself."""
    n_bags = len(world.shares)
    counts = np.diag(world.shares) * n_bags
    table = world.table(counts, world.chances, np.ones(n_bags), 0.0)
    masses = world.shares * world.chances
    weights = np.full(n_bags, 1 / n_bags)
    # Variance zero: labels have no sampling error to correct for.
    return Positives(table, masses, world.chances, 0.0, np.zeros(n_bags), weights, weights, 0.5)


def truths(world):
    labels, scores, weights = world.labelled()
    named = {
        "log_loss": metrics.log_loss,
        "auc": metrics.roc_auc_score,
        "average_precision": metrics.average_precision_score,
    }
    return {name: f(labels, scores, sample_weight=weights) for name, f in named.items()}


@pytest.mark.parametrize("error", [0.02, 0.3])
def test_score_metrics_agree_with_scikit_learn_on_the_whole_population(error):
    world = make_world(error)
    positives = exact_positives(world)
    for name, expected in truths(world).items():
        assert SCORE_METRICS[name](positives).value == pytest.approx(expected), name


def test_decision_metrics_agree_with_scikit_learn():
    world = make_world(0.1)
    labels, scores, weights = world.labelled()
    hard = scores > 0.5
    found = {name: f(*world.errors()) for name, f in DECISION_METRICS.items()}
    balanced = metrics.balanced_accuracy_score(labels, hard, sample_weight=weights)
    assert found["balanced_error"] == pytest.approx(1 - balanced)
    for name, score in [
        ("precision", metrics.precision_score),
        ("recall", metrics.recall_score),
        ("f1", metrics.f1_score),
    ]:
        assert found[name] == pytest.approx(score(labels, hard, sample_weight=weights))


@pytest.mark.parametrize("name", SCORE_METRICS)
def test_gradients_are_derivatives(name, rng):
    positives = exact_positives(make_world(0.2))
    gradient = SCORE_METRICS[name](positives)
    direction = rng.normal(size=len(positives.masses)) * 1e-5

    def moved(step):
        return SCORE_METRICS[name](
            replace(positives, masses=positives.masses + step * direction)
        ).value

    slope = (moved(1) - moved(-1)) / 2
    assert slope == pytest.approx(gradient.by_positives @ direction, rel=1e-4)
    if gradient.second is not None:
        curvature = moved(1) + moved(-1) - 2 * moved(0)
        assert curvature == pytest.approx(gradient.second(direction), rel=1e-2)


def decision_estimates(world, rng, sizes, noise):
    errors = estimate_errors(world.draw(rng, sizes, noise=noise), noise_kurtosis=3.0)
    return decision_intervals(errors)


def score_estimates(world, rng, sizes, noise):
    positives = fit_positives(world.draw(rng, sizes, noise=noise))
    found = {}
    for name, gradient in SCORE_METRICS.items():
        e = score_metric(gradient(positives), positives, noise_kurtosis=3.0)
        found[name] = e
    return found


def coverage(estimates, truth, n_draws):
    hits = dict.fromkeys(truth, 0)
    for _ in range(n_draws):
        for name, e in estimates().items():
            hits[name] += e.low <= truth[name] <= e.high
    return {name: hit / n_draws for name, hit in hits.items()}


CELLS = [(20, 50, 0.1, 0.0), (50, 60, 0.3, 0.0), (50, 60, 0.1, 1.0)]


@pytest.mark.parametrize(("bag_size", "n_bags", "error", "noise"), CELLS)
@pytest.mark.parametrize("unequal", [False, True])
def test_intervals_of_scores_cover(rng, bag_size, n_bags, error, noise, unequal):
    world = make_world(error)
    sizes = unequal_sizes(bag_size, n_bags) if unequal else np.full(n_bags, bag_size)
    n_draws = 300
    found = coverage(lambda: score_estimates(world, rng, sizes, noise), truths(world), n_draws)
    # Four standard errors of a share of 0.95.
    tolerance = 4 * np.sqrt(0.95 * 0.05 / n_draws)
    for name, share in found.items():
        assert abs(share - 0.95) < tolerance, (name, share)


@pytest.mark.parametrize(("bag_size", "n_bags", "error", "noise"), CELLS)
def test_intervals_of_decisions_cover(rng, bag_size, n_bags, error, noise):
    world = make_world(error)
    truth = {name: f(*world.errors()) for name, f in DECISION_METRICS.items()}
    sizes = np.full(n_bags, bag_size)
    found = coverage(lambda: decision_estimates(world, rng, sizes, noise), truth, 120)
    for name, share in found.items():
        assert share > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 120), (name, share)


def test_the_coverage_check_rejects_short_intervals(rng):
    world = make_world(0.1)

    def short():
        found = score_estimates(world, rng, np.full(50, 20), 0.0)
        return {
            n: replace(e, low=(e.value + e.low) / 2, high=(e.value + e.high) / 2)
            for n, e in found.items()
        }

    found = coverage(short, truths(world), 300)
    assert max(found.values()) < 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)


def test_masses_are_unbiased_for_scores_that_mislead(rng):
    # Scores turned upside down: the control is wrong, the positives must come out all the same.
    world = make_world(0.1)
    reversed_world = type(world)(world.scores, world.shares, world.chances[::-1])
    masses = np.zeros(len(world.scores))
    for _ in range(200):
        masses += fit_positives(reversed_world.draw(rng, np.full(100, 30))).masses / 200
    expected = reversed_world.shares * reversed_world.chances
    groups = np.repeat(np.arange(4), 10)
    assert np.bincount(groups, masses) == pytest.approx(np.bincount(groups, expected), abs=0.012)


def test_curves_pass_near_the_truth(rng):
    world = make_world(0.1)
    positives = fit_positives(world.draw(rng, np.full(2000, 10)))
    curve = roc_curve(positives)
    area = integrate.trapezoid(curve.y, curve.x)
    assert area == pytest.approx(truths(world)["auc"], abs=0.02)
    assert (curve.y[0], curve.y[-1]) == (0, pytest.approx(1))
    calibration = calibration_curve(positives, n_bins=5)
    expected = world.chances.reshape(5, 8).mean(axis=1)
    inside = (calibration.low <= expected) & (expected <= calibration.high)
    assert inside.sum() >= 4


def test_calibration_error_knows_a_calibrated_score_from_another(rng):
    world = make_world(0.2)
    calibrated = type(world)(world.chances, world.shares, world.chances)
    off = type(world)(np.clip(world.chances - 0.2, 0.01, 1), world.shares, world.chances)
    good = calibration_error(fit_positives(calibrated.draw(rng, np.full(400, 20))), n_bins=5)
    bad = calibration_error(fit_positives(off.draw(rng, np.full(400, 20))), n_bins=5)
    assert good.low == 0 and good.high < 0.1
    truth = np.abs((off.chances - off.scores).reshape(5, 8).mean(axis=1)).mean()
    assert bad.low < truth < bad.high


def test_studentised_interval_is_that_of_student_without_skewness():
    low, high = studentised_interval(0.5, Spread(0.1, 0.0, 10))
    assert (high - 0.5) / 0.1 == pytest.approx(2.228, abs=1e-3)
    assert low + high == pytest.approx(1)


@pytest.mark.parametrize("n_bags", [2, 3, 4])
def test_few_bags_give_wide_intervals_not_sure_ones(rng, n_bags):
    """As many coefficients as bags would leave no residual, and no doubt."""
    true_auc, hits = 0.862, 0
    for _ in range(200):
        scores = special.expit(2 * rng.normal(size=n_bags * 200))
        labels = rng.random(len(scores)) < scores
        bags = make_bags(np.zeros((len(scores), 1)), labels, bag_size=200, seed=0)
        table = score_table(scores, bags, bags.proportions, np.zeros(n_bags))
        positives = fit_positives(table)
        found = score_metric(SCORE_METRICS["auc"](positives), positives)
        hits += found.low <= true_auc <= found.high
    assert hits / 200 > 0.75
