"""`evaluate`, as a user calls it."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import unbag.evaluation
from unbag import BagRidgeClassifier
from unbag.bags import Bags, BagTarget
from unbag.errors import BagDataError
from unbag.evaluation import compare_models, estimate_risk, evaluate, evaluate_bags


@pytest.fixture
def binary(rng):
    n_instances, bag_size = 8000, 20
    X = rng.normal(size=(n_instances, 2))
    labels = (rng.random(n_instances) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(float)
    ids = np.repeat(np.arange(n_instances // bag_size), bag_size)
    y = np.repeat(labels.reshape(-1, bag_size).mean(axis=1), bag_size)
    return X, labels, ids, y


@pytest.fixture
def scores(binary):
    return 1 / (1 + np.exp(-3 * binary[0][:, 0]))


def test_scores_models_and_targets_agree(binary, scores):
    X, labels, ids, y = binary
    model = LogisticRegression().fit(X[:500], labels[:500])
    direct = evaluate(model.predict_proba(X), X, y, bags=ids)
    assert evaluate(model, X, y, bags=ids).to_dict() == direct.to_dict()
    assert evaluate(model, X, BagTarget(ids, y)).to_dict() == direct.to_dict()
    assert evaluate(model.predict_proba(X), None, y, bags=ids).to_dict() == direct.to_dict()
    assert evaluate(model, Bags.from_arrays(X, bags=ids, y=y)).to_dict() == direct.to_dict()
    assert evaluate(lambda X: model.predict_proba(X)[:, 1], X, y, bags=ids)["auc"] == direct["auc"]


def test_a_bags_comes_alone(binary, scores):
    X, _, ids, y = binary
    made = Bags.from_arrays(X, bags=ids, y=y)
    with pytest.raises(BagDataError, match="Pass no y, bags or noise_variance"):
        evaluate(scores, made, y)
    with pytest.raises(BagDataError, match="y is missing"):
        evaluate(scores, X)


def test_every_metric_of_the_table(binary, scores):
    X, _, ids, y = binary
    found = evaluate(scores, X, y, bags=ids)
    assert list(found) == [
        "error",
        "brier",
        "balanced_error",
        "precision",
        "recall",
        "specificity",
        "f1",
        "prior",
        "log_loss",
        "auc",
        "average_precision",
        "calibration_error",
    ]
    for name in found:
        assert found[name].low <= found[name].value <= found[name].high, name
    assert found.confusion.sum() == pytest.approx(1)
    off_diagonal = found.confusion[0, 1] + found.confusion[1, 0]
    assert off_diagonal == pytest.approx(found["error"].value)


def test_bags_of_one_give_the_metrics_of_labels(binary, scores):
    from sklearn import metrics

    X, labels, _, _ = binary
    found = evaluate(scores, X, labels)
    hard = scores > 0.5
    assert found["error"].value == pytest.approx(np.mean(hard != labels))
    assert found["brier"].value == pytest.approx(np.mean((scores - labels) ** 2))
    assert found["f1"].value == pytest.approx(metrics.f1_score(labels, hard), abs=1e-6)
    assert found["auc"].value == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-3)
    assert found["log_loss"].value == pytest.approx(metrics.log_loss(labels, scores), abs=1e-3)
    expected = np.sqrt(found["error"].value * (1 - found["error"].value) / len(labels))
    assert found["error"].standard_error == pytest.approx(expected, rel=0.02)
    assert found.equivalent_labels == pytest.approx(len(labels), rel=0.05)


def test_forgotten_bags_are_refused(scores):
    labels = np.arange(len(scores)) % 2
    for y, noise in ((np.full(len(scores), 0.5), None), (labels, 0.01)):
        with pytest.raises(BagDataError, match="no bags"):
            evaluate(scores, None, y, noise_variance=noise)
        with pytest.raises(BagDataError, match="no bags"):
            compare_models(scores, scores, None, y, noise_variance=noise)


def test_bags_that_leave_rows_out_ignore_their_scores(binary, scores):
    X, _, ids, y = binary
    bags = Bags.from_arrays(X, bags=ids, y=y)
    half = bags.take(np.arange(0, bags.n_bags, 2))
    other = np.setdiff1d(np.arange(len(X)), half.rows)
    changed = scores.copy()
    changed[other] = 1 - changed[other] / 2
    assert evaluate_bags(scores, half).to_dict() == evaluate_bags(changed, half).to_dict()


def test_noise_is_accounted_for(binary, scores, rng):
    X, _, ids, y = binary
    variance = 0.05**2
    noisy = y + np.repeat(rng.normal(size=ids.max() + 1) * 0.05, 20)
    found = evaluate(scores, X, noisy, bags=ids, noise_variance=variance, noise_kurtosis=0.0)
    exact = evaluate(scores, X, y, bags=ids)
    assert abs(found["error"].value - exact["error"].value) < 4 * found["error"].standard_error
    assert found["error"].standard_error > exact["error"].standard_error
    known = Bags.from_arrays(X, bags=ids, y=noisy, noise_variance=variance)
    ignored = evaluate_bags(scores, replace(known, noise_variance=None))
    assert ignored["error"].value > found["error"].high


def test_labels_give_the_metrics_of_the_sample(rng):
    from sklearn import metrics

    labels = (np.arange(10) < 5).astype(float)
    scores = np.clip(0.5 + 0.2 * (labels - 0.5) + 0.25 * rng.normal(size=10), 0.01, 0.99)
    found = evaluate(scores, None, labels)
    for name, metric in [
        ("auc", metrics.roc_auc_score),
        ("log_loss", metrics.log_loss),
        ("average_precision", metrics.average_precision_score),
        ("brier", metrics.brier_score_loss),
    ]:
        assert found[name].value == pytest.approx(metric(labels, scores)), name


def noisy_unequal_bags(rng, sizes):
    """Predictions with 10 % errors, and bags whose proportions bear noise of a private count."""
    labels = (rng.random(sizes.sum()) < 0.5).astype(float)
    offsets = np.append(0, np.cumsum(sizes))
    noisy = (np.add.reduceat(labels, offsets[:-1]) + rng.laplace(size=len(sizes))) / sizes
    bags = Bags.from_arrays(
        np.zeros((len(labels), 1)), offsets=offsets, proportions=noisy, noise_variance=2 / sizes**2
    )
    return np.where(rng.random(len(labels)) < 0.1, 1 - labels, labels), bags


def test_the_error_is_the_estimated_risk(rng):
    scores, bags = noisy_unequal_bags(rng, np.tile([5, 40], 20))
    for kurtosis in (0.0, 3.0):
        found = evaluate_bags(scores, bags, noise_kurtosis=kurtosis)
        risk = estimate_risk(scores, bags, noise_kurtosis=kurtosis)
        error = found["error"]
        ends = error.value, error.low, error.high
        assert ends == (risk.value, risk.low, risk.high)
        assert found.confusion[0, 1] + found.confusion[1, 0] == pytest.approx(risk.value)


def test_an_estimate_outside_its_range_is_flagged_and_not_clipped(rng):
    ids = np.repeat(np.arange(30), 2)
    y = np.full(60, 0.5)
    found = evaluate(np.tile([0.01, 0.99], 30), np.zeros((60, 1)), y, bags=ids, noise_variance=0.02)
    assert found["error"].value < 0
    assert found["error"].outside
    assert "no possible value fits" in str(found)
    assert found["error"].headline == "cannot tell"
    assert found.to_frame().loc["error", "outside"]


def test_bags_that_no_error_explains_say_so(rng):
    """Scores that are right in half of the bags and wrong in the others."""
    ids, y = np.repeat(np.arange(40), 20), np.repeat(np.tile([0.0, 1.0], 20), 20)
    bags = Bags.from_arrays(np.zeros((800, 1)), bags=ids, y=y)
    found = evaluate_bags(np.where(rng.random(800) < 0.5, 0.9, 0.1), bags)
    assert found["error"].value > 1.5
    assert found["error"].note == "no possible value fits these bags"
    assert estimate_risk(np.full(800, 0.9), bags).headline == "cannot tell"


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_intervals_of_decisions_hold_their_estimates(rng, noise):
    for _ in range(200):
        sizes = rng.integers(1, 6, 12)
        labels = rng.random(sizes.sum()) < 0.3
        ids = np.repeat(np.arange(12), sizes)
        rates = np.bincount(ids, labels) / sizes + rng.laplace(size=12) * (noise / 2) ** 0.5 / sizes
        bags = Bags.from_arrays(
            np.zeros((len(ids), 1)), bags=ids, proportions=rates, noise_variance=noise / sizes**2
        )
        found = evaluate_bags(np.where(labels ^ (rng.random(len(ids)) < 0.4), 0.8, 0.2), bags)
        for name in ("balanced_error", "recall", "precision", "f1"):
            nearest = np.clip(found[name].value, 0, 1)
            assert not found[name].low > nearest and not found[name].high < nearest


def test_prints_exports_and_plots(binary, scores):
    X, _, ids, y = binary
    found = evaluate(scores, X, y, bags=ids)
    assert "400 bags" in str(found) and "average_precision" in str(found)
    assert found.to_frame().loc["auc", "estimate"] == found["auc"].value
    for draw in (found.plot_roc, found.plot_calibration, found.plot_residuals):
        chart = draw()
        assert chart.x_label and chart.y_label and chart._repr_html_().count("<svg") == 1


@pytest.mark.parametrize("prior", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("score", [0.0, 0.3, 0.7, 1.0])
def test_metrics_that_are_not_defined_say_so(rng, prior, score):
    labels = (rng.random(200) < prior).astype(float)
    ids = np.repeat(np.arange(20), 10)
    y = np.repeat(labels.reshape(20, 10).mean(axis=1), 10)
    found = evaluate(np.full(200, score), np.zeros((200, 1)), y, bags=ids)
    assert (
        found["error"].low - 1e-6 <= np.mean((score > 0.5) != labels) <= found["error"].high + 1e-6
    )
    if score < 0.5:
        assert np.isnan(found["precision"].value) and "not defined" in str(found)
    if labels.min() == labels.max():
        assert np.isnan(found["auc"].value)


def test_a_model_without_probabilities_is_refused(binary):
    from sklearn.svm import LinearSVC

    X, _, ids, y = binary
    with pytest.raises(BagDataError, match="predict_proba"):
        evaluate(LinearSVC(), X, y, bags=ids)


LAZY = {"pandas", "polars", "matplotlib", "torch", "rich"}


def imported_at_once(text):
    """Packages a module imports when it is itself imported."""
    nodes = [n for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom)]
    names = [getattr(n, "module", None) or n.names[0].name for n in nodes]
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("path", sorted(Path(unbag.evaluation.__path__[0]).glob("*.py")))
def test_heavy_packages_are_imported_only_when_used(path):
    assert not imported_at_once(path.read_text()) & LAZY


def test_the_import_check_sees_an_import():
    assert imported_at_once("from pandas.core import frame\nimport os") & LAZY


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("sizes", [[10] * 50, [2, 5, 30] * 15], ids=["equal", "unequal"])
def test_what_a_missing_class_leaves_undefined_is_nan(rng, label, sizes):
    ids = np.repeat(np.arange(len(sizes)), sizes)
    found = evaluate(rng.random(len(ids)), None, np.full(len(ids), label), bags=ids)
    absent = ("specificity",) if label else ("recall", "average_precision")
    assert all(np.isnan(found[name].value) for name in ("auc", "balanced_error", *absent))
    assert found["prior"].value == pytest.approx(label)
    assert "error" in found and np.isfinite(found["error"].value)


def test_a_metric_or_number_of_bins_that_is_not_there_is_named(rng):
    ids = np.repeat(np.arange(20), 5)
    found = evaluate(rng.random(100), None, np.full(100, 0.4), bags=ids)
    with pytest.raises(KeyError, match="no metric 'accuracy'; there are error"):
        found["accuracy"]
    with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1, got 0"):
        evaluate(rng.random(100), None, np.full(100, 0.4), bags=ids, n_bins=0)


@pytest.mark.parametrize("given", [{"smoothness": 0.5}, {"blocks": [0, 0, 1, 1]}])
def test_what_only_natural_groups_have_is_refused_for_random_ones(given):
    with pytest.raises(BagDataError, match=r"are for natural groups.*grouping='natural'"):
        evaluate([0.1, 0.9, 0.2, 0.7], None, [0.5, 0.5, 1, 1], bags=[0, 0, 1, 1], **given)


def test_a_model_needs_instances():
    clf = BagRidgeClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(BagDataError, match=r"X must hold the instances.*got None"):
        evaluate(clf, None, [0.5, 0.5, 1, 1], bags=[0, 0, 1, 1])


def test_amounts_are_told_from_shares():
    with pytest.raises(BagDataError, match="task='amount'"):
        evaluate([7.0, 3.0, 2.0, 8.0], None, [5, 5, 9, 9], bags=[0, 0, 1, 1])
