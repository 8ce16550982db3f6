"""Boosting on bags: the gradient against autograd, scikit-learn's checks, saving."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import unbag
from unbag import BagBatch, BagBoostingClassifier, Bags
from unbag.errors import BagDataError, MissingExtraError
from unbag.estimators import ModelFolderError
from unbag.estimators.gradients import BagGradients, initial_scores, scores_of_raw
from unbag.rules import DebiasedSquare

pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")

# Few small trees, so that the contract takes seconds.
SMALL = {"n_estimators": 60, "n_runs": 1, "min_child_samples": 5, "reg_lambda": 1.0}


RULES = ["debiased_square", "count_likelihood"]


@parametrize_with_checks([BagBoostingClassifier(rule=r, **SMALL, random_state=0) for r in RULES])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def random_bags(rng, task="binary", noise_variance=None):
    sizes = rng.integers(1, 7, size=15)
    n_outputs = 1 if task == "binary" else 3
    if task == "multiclass":
        proportions = rng.dirichlet(np.ones(3), size=15)
    else:
        proportions = rng.random((15, n_outputs))
    X, rows = rng.normal(size=(sizes.sum(), 2)), np.arange(sizes.sum())
    if task == "binary":
        proportions = proportions[:, 0]
    return Bags(X, rows, sizes, proportions, list(range(15)), noise_variance, task)


def torch_gradient(bags, raw):
    """Of the rule itself, times the number of instances, by autograd."""
    logits = torch.tensor(raw, requires_grad=True)
    batch = BagBatch(torch.tensor(bags.proportions), torch.tensor(bags.sizes), task=bags.task)
    flat = logits.squeeze(-1) if bags.task == "binary" else logits
    loss = bags.n_instances * DebiasedSquare()(flat, batch)
    return torch.autograd.grad(loss, logits)[0].numpy()


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_the_gradient_is_that_of_the_rule(rng, task):
    bags = random_bags(rng, task)
    raw = rng.normal(size=(bags.n_instances, bags.n_outputs))
    gradient, _ = BagGradients(bags, learning_rate=0.1)(raw)
    np.testing.assert_allclose(gradient, torch_gradient(bags, raw), rtol=1e-10, atol=1e-12)
    # and the comparison can fail: without centring it is another loss
    uncentred = BagGradients(bags, learning_rate=0.1)
    uncentred.spread_weight *= 1.01
    assert not np.allclose(uncentred(raw)[0], torch_gradient(bags, raw), rtol=1e-4)


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_the_curvature_is_the_diagonal_of_gauss_newton(rng, task):
    """Against second differences of the loss with the link made linear at the point."""
    bags = random_bags(rng, task, noise_variance=rng.random(15))
    gradients = BagGradients(bags, learning_rate=0.1)
    raw = rng.normal(size=(bags.n_instances, bags.n_outputs))
    scores, n = scores_of_raw(raw, task), bags.n_instances

    def loss(shifted_scores):
        r, w = gradients.residuals(shifted_scores), gradients.weights[:, None]
        mean = (w * r).sum(axis=0) / w.sum()
        return n * (mean**2 + gradients.spread_weight * (w * (r - mean) ** 2).sum(axis=0)).sum()

    _, curvature = gradients(raw)
    for row, column in [(0, 0), (n // 2, bags.n_outputs - 1)]:
        step = np.zeros_like(raw)
        step[row, column] = 1e-5
        slope = (scores_of_raw(raw + step, task) - scores_of_raw(raw - step, task)) / 2e-5
        second = loss(scores + slope) + loss(scores - slope) - 2 * loss(scores)
        assert curvature[row, column] == pytest.approx(second, rel=1e-4)


def test_noisy_bags_weigh_less(rng):
    exact, noisy = random_bags(rng), None
    noisy = Bags(
        exact.X, exact.rows, exact.sizes, exact.proportions, exact.ids, np.full(15, 0.5), "binary"
    )
    assert (
        BagGradients(noisy, learning_rate=0.1).weights
        < BagGradients(exact, learning_rate=0.1).weights
    ).all()


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_the_initial_score_is_the_prior(rng, task):
    bags = random_bags(rng, task)
    scores = scores_of_raw(initial_scores(bags)[None], task)
    np.testing.assert_allclose(scores[0], np.atleast_1d(bags.prior), atol=0.02)


@pytest.fixture(scope="module")
def bagged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    labels = (X[:, 0] * X[:, 1] > 0).astype(int)
    bags = np.repeat(np.arange(400), 10)
    y = labels.reshape(400, 10).mean(axis=1)[bags]
    order = rng.permutation(4000)
    return X[order], y[order], bags[order], labels[order]


@pytest.fixture(scope="module", params=RULES)
def fitted(bagged, request):
    X, y, bags, _ = bagged
    clf = BagBoostingClassifier(rule=request.param, n_estimators=150, random_state=0)
    return clf.fit(X, y, bags=bags)


def test_it_learns_what_no_linear_model_can(fitted, bagged):
    X, y, bags, labels = bagged
    assert fitted.score(X, labels) > 0.93
    assert unbag.BagRidgeClassifier().fit(X, y, bags=bags).score(X, labels) < 0.6


def test_it_is_evaluated_like_the_others(fitted, bagged):
    X, y, bags, _ = bagged
    found = unbag.evaluate(fitted, X, y, bags=bags)["error"].value
    assert 1 - fitted.score(X, y, bags=bags) == pytest.approx(found)


@pytest.mark.parametrize("rule", RULES)
def test_several_classes(rng, rule):
    X = rng.normal(size=(3000, 3))
    labels = X.argmax(axis=1)
    bags = np.repeat(np.arange(600), 5)
    y = np.eye(3)[labels].reshape(600, 5, 3).mean(axis=1)[bags]
    clf = BagBoostingClassifier(rule=rule, n_estimators=80, random_state=0).fit(X, y, bags=bags)
    assert clf.score(X, labels) > 0.85
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("rule", RULES)
def test_several_labels(rng, rule):
    X = rng.normal(size=(2000, 2))
    labels = np.column_stack([X[:, 0] > 0, X[:, 0] > -1]).astype(float)
    bags = np.repeat(np.arange(400), 5)
    y = labels.reshape(400, 5, 2).mean(axis=1)[bags]
    clf = BagBoostingClassifier(rule=rule, n_estimators=80, random_state=0).fit(X, y, bags=bags)
    assert (clf.predict(X) == labels).mean() > 0.9


@pytest.mark.parametrize("rule", RULES)
def test_folds_choose_the_number_of_trees(bagged, rule):
    X, y, bags, labels = bagged
    clf = BagBoostingClassifier(rule=rule, n_estimators=150, cv=3, random_state=0)
    clf.fit(X, y, bags=bags)
    assert clf.n_trees_ == clf.held_out_risk_.argmin() + 1
    assert len(clf.held_out_risk_) == 150
    assert clf.score(X, labels) > 0.9


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_runs_side_by_side_are_averaged(rng, bagged, n_outputs):
    """The raw scores are the mean of models that are not the same, each one's own gradient."""
    X, y, bags, _ = bagged
    if n_outputs == 3:
        y = np.column_stack([y, 1 - y, np.zeros_like(y)])
    clf = BagBoostingClassifier(n_estimators=30, n_runs=2, random_state=0).fit(X, y, bags=bags)
    raw = clf.booster_.predict(X, raw_score=True).reshape(len(X), 2, n_outputs)
    assert not np.allclose(raw[:, 0], raw[:, 1])
    mean = raw.mean(axis=1) + clf.initial_score_
    wanted = scores_of_raw(mean, clf.task_)
    np.testing.assert_allclose(clf.predict_proba(X)[:, -n_outputs:], wanted, rtol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_noise_of_known_variance_is_learned_through(rng, bagged, rule):
    X, y, bags, labels = bagged
    noise = rng.normal(scale=0.05, size=400)
    clf = BagBoostingClassifier(rule=rule, n_estimators=150, n_runs=1, random_state=0)
    clf.fit(X, y + noise[bags], bags=bags, noise_variance=0.05**2)
    assert clf.score(X, labels) > 0.85


def test_each_rule_has_its_own_penalty(bagged):
    """Which `reg_lambda` overrules, and cloning keeps."""
    X, y, bags, _ = bagged
    scores = {}
    for rule, penalty in [("debiased_square", 50.0), ("count_likelihood", 1.0)]:
        clf = BagBoostingClassifier(rule=rule, n_estimators=5, n_runs=1, random_state=0)
        assert clone(clf).get_params()["rule"] == rule
        for value in (None, penalty, 2 * penalty):
            clf = clone(clf).set_params(reg_lambda=value).fit(X, y, bags=bags)
            scores[rule, value] = clf.predict_proba(X)
        np.testing.assert_array_equal(scores[rule, None], scores[rule, penalty])
        assert not np.allclose(scores[rule, None], scores[rule, 2 * penalty])
    assert not np.allclose(scores["debiased_square", None], scores["count_likelihood", None])


def test_another_rule_is_refused(bagged):
    X, y, bags, _ = bagged
    with pytest.raises(ValueError, match="BagClassifier"):
        BagBoostingClassifier(rule="easy_log").fit(X, y, bags=bags)


def test_constant_features_are_refused():
    with pytest.raises(BagDataError, match="varies"):
        BagBoostingClassifier().fit(np.ones((40, 2)), [0, 1] * 20)


def test_a_saved_model_predicts_the_same(fitted, bagged, tmp_path):
    X = bagged[0]
    again = BagBoostingClassifier.load(fitted.save(tmp_path / "trees"))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_damaged_trees_are_refused(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(fitted.booster_, "model_to_string", lambda **_: "no trees")
    with pytest.raises(ModelFolderError, match="trees"):
        BagBoostingClassifier.load(fitted.save(tmp_path / "trees"))


def test_without_lightgbm_the_extra_is_named(bagged, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    X, y, bags, _ = bagged
    with pytest.raises(MissingExtraError, match=r"unbag\[gbm\]"):
        BagBoostingClassifier().fit(X, y, bags=bags)


def test_gaps_and_categories_are_split_as_lightgbm_does(rng, tmp_path):
    X = np.column_stack([rng.normal(size=3000), rng.integers(12, size=3000), rng.normal(size=3000)])
    gap = rng.random(3000) < 0.3
    labels = np.isin(X[:, 1], [1, 4, 6, 9, 11]) ^ gap
    X[gap, 0] = np.nan
    ids = np.repeat(np.arange(300), 10)
    y = labels.reshape(300, 10).mean(axis=1)[ids]
    options = {"n_estimators": 60, "num_leaves": 4, "random_state": 0}
    clf = BagBoostingClassifier(categorical_features=[1], **options).fit(X, y, bags=ids)
    ordered = BagBoostingClassifier(**options).fit(X, y, bags=ids)
    right = [(model.predict(X) == labels).mean() for model in (clf, ordered)]
    assert right[0] > 0.95 and right[0] > right[1]
    shares = clf.feature_importances_
    assert shares.sum() == pytest.approx(1) and shares[:2].min() > 0.2 > shares[2]
    clf.save(tmp_path / "model")
    loaded = BagBoostingClassifier.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_allclose(loaded.feature_importances_, shares, rtol=1e-3)
