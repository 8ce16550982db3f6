"""The stack: its weights are the best for held-out bags, and its error estimate is honest."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.support.jobs import DyingRidge

from unbag import (
    BagEMClassifier,
    BagLogisticClassifier,
    BagRidgeClassifier,
    Bags,
    BagStackingClassifier,
    make_bags,
)
from unbag.errors import BagDataError
from unbag.estimators import stack_jobs
from unbag.estimators.candidates import default_candidates
from unbag.estimators.stack_weights import (
    CrossFit,
    bagged_weights,
    better_than_prior,
    likelihood_weights,
    risk_matrix,
    risk_weights,
    shrunk_to_constant,
)
from unbag.evaluation.checks import find_grouping

FAST = [
    ("prior", BagRidgeClassifier(penalties=[1e12])),
    ("ridge", BagRidgeClassifier()),
    ("logistic", BagLogisticClassifier(random_state=0)),
]


@parametrize_with_checks([BagStackingClassifier(FAST[1:], cv=2, random_state=0)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def bagged(rng, n_bags=80, bag_size=10):
    X = rng.normal(size=(n_bags * bag_size, 3))
    labels = rng.uniform(size=len(X)) < expit(3 * X[:, 0])
    bags = np.repeat(np.arange(n_bags), bag_size)
    return X, labels.reshape(n_bags, bag_size).mean(axis=1)[bags], bags, labels


def cross_fit(rng, n_bags=200, bag_size=10, spreads=(0.5, 1.0, 3.0)):
    """Scores that are the truth with more or less noise on the logit, and the labels."""
    logits = 2 * rng.normal(size=n_bags * bag_size)
    labels = (rng.uniform(size=len(logits)) < expit(logits)).astype(float)
    noisy = [expit(logits + spread * rng.normal(size=len(logits))) for spread in spreads]
    scores = np.stack(noisy)[:, :, None]
    offsets = np.arange(n_bags + 1) * bag_size
    bags = Bags.from_arrays(logits, offsets=offsets, counts=labels.reshape(n_bags, -1).sum(axis=1))
    return scores, CrossFit.of(scores, bags, np.arange(n_bags) % 5), labels


def test_the_quadratic_form_is_unbiased_for_the_risk_of_any_mixture(rng):
    """Mean over draws of w'Qw minus the square loss of the mixture on the labels."""
    weights = np.array([0.5, 0.3, 0.2])
    errors = []
    for _ in range(300):
        scores, data, labels = cross_fit(rng, n_bags=40)
        truth = ((weights @ scores[:, :, 0] - labels) ** 2).mean()
        errors.append(weights @ risk_matrix(data) @ weights - truth)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(300)
    assert np.std(errors) < 0.1


def test_the_check_of_bias_rejects_proportion_matching(rng):
    """The mean square of residuals, without debiasing, is no estimate of the risk."""
    errors = []
    for _ in range(50):
        scores, data, labels = cross_fit(rng, n_bags=40)
        residuals = (data.sums[:, 0, 0] - data.counts[:, 0]) / data.sizes
        errors.append((residuals**2).mean() - ((scores[0, :, 0] - labels) ** 2).mean())
    assert abs(np.mean(errors)) > 4 * np.std(errors) / np.sqrt(50)


def test_weights_are_the_minimum_over_a_grid_of_the_simplex(rng):
    _, data, _ = cross_fit(rng)
    matrix = risk_matrix(data)
    found = risk_weights(matrix)
    assert found.min() >= 0 and found.sum() == pytest.approx(1)
    grid = [
        np.array([a, b, 20 - a - b]) / 20 for a, b in product(range(21), repeat=2) if a + b < 21
    ]
    assert found @ matrix @ found <= min(w @ matrix @ w for w in grid) + 1e-9


@pytest.mark.parametrize("by", ["risk", "likelihood"])
def test_a_first_guess_draws_weights_to_it_the_fewer_the_bags(by, rng):
    guess, gaps = np.array([0.0, 0.0, 1.0]), []
    for n_bags in (20, 2000):
        _, data, _ = cross_fit(rng, n_bags=n_bags)
        best = risk_weights if by == "risk" else likelihood_weights
        of = risk_matrix(data) if by == "risk" else data
        alone, drawn = best(of), best(of, guess=guess, strength=1e6)
        assert np.abs(drawn - guess).max() < 1e-3 < np.abs(alone - guess).max()
        with_guess = bagged_weights(data, by=by, seed=0, n_draws=5, guess=guess)
        without = bagged_weights(data, by=by, seed=0, n_draws=5)
        gaps.append(np.abs(with_guess - without).max())
    assert gaps[1] < gaps[0] / 4


def test_a_guess_of_nothing_for_all_that_remain_is_none(rng):
    _, data, _ = cross_fit(rng, n_bags=50)
    without, nothing = (
        bagged_weights(data, by="risk", seed=0, n_draws=3, guess=guess)
        for guess in (None, np.zeros(3))
    )
    assert without.tolist() == nothing.tolist()


def with_constant(data, folds):
    """A cross-fit with the rate of the other folds as a model more, the last."""
    rates = [data.counts[folds != f].sum() / data.sizes[folds != f].sum() for f in range(5)]
    sums = (data.sizes * np.array(rates)[folds])[:, None, None]
    return replace(data, sums=np.concatenate([data.sums, sums], axis=1))


@pytest.mark.parametrize("n_bags", [20, 400])
def test_what_may_be_chance_goes_to_the_constant_model(n_bags, rng):
    """Of scores that know the labels most is kept, of scores that know nothing little."""
    weights, folds = np.array([0.5, 0.5, 0.0, 0.0]), np.arange(n_bags) % 5
    kept = {"useful": [], "useless": []}
    for _ in range(30):
        _, data, _ = cross_fit(rng, n_bags=n_bags)
        shuffled = replace(data, counts=rng.permutation(data.counts))
        for name, own in (("useful", data), ("useless", shuffled)):
            found = shrunk_to_constant(weights, with_constant(own, folds))
            assert found.sum() == pytest.approx(1) and found[0] == pytest.approx(found[1])
            kept[name].append(1 - found[-1])
    assert np.mean(kept["useful"]) > 0.65 > 0.35 > np.mean(kept["useless"])


def test_without_a_constant_model_no_weight_moves(rng):
    _, data, _ = cross_fit(rng)
    weights = np.array([0.5, 0.3, 0.2])
    assert shrunk_to_constant(weights, data).tolist() == weights.tolist()


def test_a_table_without_signal_gets_its_rate(rng):
    """Without the constant model an eager learner follows noise."""
    eager = ("eager", BagRidgeClassifier(penalties=[1e-3]))
    X, worse = rng.normal(size=(8000, 5)), []
    labels = rng.uniform(size=8000) < 0.4
    bags = np.repeat(np.arange(40), 200)
    y = labels.reshape(40, 200).mean(axis=1)[bags]
    for candidates in ([FAST[0], eager], [eager]):
        clf = BagStackingClassifier(candidates, grouping="random", random_state=0)
        fresh = clf.fit(X, y, bags=bags).predict_proba(rng.normal(size=(4000, 5)))[:, 1]
        worse.append(((fresh - 0.4) ** 2).mean())
    assert worse[0] < worse[1] / 2


def test_likelihood_weights_are_the_minimum_over_a_grid(rng):
    from unbag.estimators.stack_weights import _likeliest_effect, _minus_log

    _, data, _ = cross_fit(rng)
    found = likelihood_weights(data)
    effect = _likeliest_effect(found, data)
    grid = [
        np.array([a, b, 20 - a - b]) / 20 for a, b in product(range(21), repeat=2) if a + b < 21
    ]
    best = min(_minus_log(w, data, effect)[0] for w in grid)
    assert _minus_log(found, data, effect)[0] <= best + 1e-4


@pytest.mark.parametrize("n_bags", [20, 400])
def test_oracle_inequality(n_bags, rng):
    """The mixture exceeds the best one by no more than twice the largest error of an entry of Q.

    The expectation of Q is measured on the labels of many instances, which took no part.
    """
    scores, _, labels = cross_fit(rng, n_bags=20_000)
    gaps = scores[:, :, 0] - labels
    truth = gaps @ gaps.T / len(labels)
    best = risk_weights(truth)
    for _ in range(20):
        _, data, _ = cross_fit(rng, n_bags=n_bags)
        matrix = risk_matrix(data)
        bound = 2 * np.abs(matrix - truth).max()
        strength = 20 * np.median(np.diag(matrix)) / n_bags
        for weights, more in (
            (risk_weights(matrix), 0.0),
            (risk_weights(matrix, guess=np.eye(3)[2], strength=strength), 2 * strength),
            (bagged_weights(data, by="risk", seed=0, n_draws=10), 0.0),
        ):
            excess = weights @ truth @ weights - best @ truth @ best
            assert -1e-9 < excess <= bound + more


@pytest.mark.parametrize("by", ["risk", "likelihood"])
def test_clearly_worse_candidates_get_nothing(by, rng):
    _, data, _ = cross_fit(rng, n_bags=1000, spreads=(0.3, 6.0))
    assert bagged_weights(data, by=by, seed=0, n_draws=10)[0] > 0.9


def test_models_worse_than_the_prior_take_no_part(rng):
    scores, _, _ = cross_fit(rng, n_bags=300, spreads=(0.3, 0.3))
    labels = rng.uniform(size=3000) < scores[0, :, 0]
    offsets = np.arange(301) * 10
    bags = Bags.from_arrays(labels, offsets=offsets, counts=labels.reshape(300, -1).sum(axis=1))
    turned = np.stack([scores[0], 1 - scores[1]])
    data = CrossFit.of(turned, bags, np.arange(300) % 5)
    assert better_than_prior(data).tolist() == [True, False]
    assert better_than_prior(data.only([1])).tolist() == [True]  # somebody must
    assert bagged_weights(data, by="likelihood", seed=0, n_draws=3).tolist() == [1, 0]
    assert bagged_weights(data, by="risk", seed=0, n_draws=3)[0] > 0.95  # by its weight alone


def test_the_mixture_is_that_of_its_candidates(rng):
    X, y, bags, labels = bagged(rng)
    clf = BagStackingClassifier(FAST, grouping="random", random_state=0).fit(X, y, bags=bags)
    assert sum(clf.weights_.values()) == pytest.approx(1)
    assert set(clf.candidates_) == {name for name, weight in clf.weights_.items() if weight}
    centred = (X - clf.centre_) / clf.scale_
    parts = {n: m._scores(X if n == "logistic" else centred) for n, m in clf.candidates_.items()}
    wanted = sum(clf.weights_[name] * part for name, part in parts.items())
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], wanted, atol=1e-9)
    assert clf.score(X, labels) > 0.8
    assert clf.candidate_risks_["logistic"].value < clf.candidate_risks_["prior"].value


def test_the_stated_error_is_honest(rng):
    """Over draws, the estimate is that of the error on fresh labels, up to its standard error."""
    errors = []
    fresh = rng.normal(size=(4000, 3))
    truth = rng.uniform(size=4000) < expit(3 * fresh[:, 0])
    for _ in range(12):
        X, y, bags, _ = bagged(rng)
        clf = BagStackingClassifier(FAST[:2], grouping="random", random_state=0)
        clf.fit(X, y, bags=bags)
        errors.append(clf.risk_.value - (clf.predict(fresh) != truth).mean())
    # Fits to four fifths of the bags are a little worse than the one that is judged.
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(12) + 0.01
    assert "estimated error" in str(clf) and str(clf.baseline_) in str(clf)


def test_natural_groups_are_told_from_random_ones(rng):
    X, _, _, labels = bagged(rng, n_bags=100)
    assert find_grouping(make_bags(X, labels.astype(int), bag_size=10, seed=0)) == "random"
    groups = np.argsort(np.argsort(X[:, 0])) // 10
    means = np.bincount(groups, labels) / 10
    clf = BagStackingClassifier(FAST, random_state=0).fit(X, means[groups], bags=groups)
    assert clf.grouping_ == "natural" and clf.risk_ is None and not clf.candidate_risks_
    assert clf.score(X, labels) > 0.75


def test_folds_follow_blocks_and_gaps_are_allowed(rng):
    X, y, bags, labels = bagged(rng)
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    em = BagEMClassifier(LogisticRegression(), n_rounds=1, random_state=0)
    clf = BagStackingClassifier([*FAST, ("em", em)], random_state=0)
    clf.fit(X, y, bags=bags, blocks=bags // 8)
    assert clf.score(X, labels) > 0.78


def test_the_default_learns_classes(rng):
    pytest.importorskip("lightgbm", reason="the extra unbag[gbm] is not installed")
    X = rng.normal(size=(600, 3))
    labels = X.argmax(axis=1)
    bags = np.repeat(np.arange(60), 10)
    y = np.eye(3)[labels].reshape(60, 10, 3).mean(axis=1)[bags]
    clf = BagStackingClassifier(quick=True, random_state=0).fit(X, y, bags=bags)
    assert clf.score(X, labels) > 0.75
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("natural", [False, True])
def test_few_bags_and_quick_ones_get_no_more_than_others(natural, rng):
    """Fewer candidates, and no larger trees: what few bags tell of interactions is noise."""
    leaves, names = {}, {}
    for n_bags, quick in product((40, 400), (False, True)):
        ids = np.repeat(np.arange(n_bags), 5)
        y = rng.integers(6, size=n_bags)[ids] / 5
        data = Bags.from_arrays(rng.normal(size=(len(ids), 2)), y=y, bags=ids)
        found = dict(default_candidates(data, natural=natural, quick=quick, seed=0))
        leaves[n_bags, quick] = max(
            model.max_leaf_nodes for name, model in found.items() if name.startswith("em_")
        )
        names[n_bags, quick] = set(found)
    assert leaves[40, False] <= leaves[400, False] and leaves[40, True] <= leaves[400, True]
    assert names[40, True] <= names[40, False] and len(names[40, False]) <= len(names[400, False])
    assert all("prior" in found for found in names.values())


def test_save_and_load(rng, tmp_path):
    X, y, bags, _ = bagged(rng)
    clf = BagStackingClassifier(FAST, grouping="random", random_state=0).fit(X, y, bags=bags)
    again = BagStackingClassifier.load(clf.save(tmp_path / "m"))
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X))
    assert again.weights_ == clf.weights_ and again.risk_ == clf.risk_


def test_very_few_bags_share_the_weight(rng):
    X, y, bags, _ = bagged(rng, n_bags=3, bag_size=100)
    clf = BagStackingClassifier(FAST, grouping="random", random_state=0).fit(X, y, bags=bags)
    assert len(set(clf.weights_.values())) == 1 and clf.risk_ is None


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ([], "pairs of a name"),
        ([BagRidgeClassifier()], "pairs of a name"),
        ([FAST[0], FAST[0]], "names of their own"),
        ([("nothing", object())], "predict_proba"),
    ],
)
def test_bad_candidates_are_named(candidates, words, rng):
    X, y, bags, _ = bagged(rng, n_bags=10)
    with pytest.raises((ValueError, TypeError), match=words):
        BagStackingClassifier(candidates).fit(X, y, bags=bags)


@pytest.mark.parametrize("cv", [0, 1, 2.5, "five"])
def test_folds_are_a_whole_number_of_at_least_two(cv, rng):
    X, y, bags, _ = bagged(rng, n_bags=10)
    for estimator in (BagStackingClassifier, BagEMClassifier, BagLogisticClassifier):
        with pytest.raises(ValueError, match=f"cv must be a whole number .* 2, got {cv!r}"):
            estimator(cv=cv).fit(X, y, bags=bags)


@pytest.mark.parametrize("where", ["processes", "ray"])
def test_a_killed_worker_changes_nothing(where, request, rng, tmp_path):
    if where == "ray":
        request.getfixturevalue("ray_executor")
    X = rng.normal(size=(400, 3))
    ids = np.repeat(np.arange(40), 10)
    y = (X[:, 0] > 0).reshape(40, 10).mean(axis=1)[ids]
    X[::7, 1] = np.nan
    candidates = [("dying", DyingRidge(str(tmp_path))), ("logistic", BagLogisticClassifier())]
    options = {"candidates": candidates, "grouping": "random", "cv": 3, "random_state": 0}
    place = {"ray": "local"} if where == "ray" else {"n_jobs": 2}
    found = BagStackingClassifier(**options, **place).fit(X, y, bags=ids)
    assert (tmp_path / "died").exists()  # so that it lives from now on
    alone = BagStackingClassifier(**options).fit(X, y, bags=ids)
    assert found.weights_ == pytest.approx(alone.weights_, abs=1e-9)
    np.testing.assert_allclose(found.predict_proba(X), alone.predict_proba(X), atol=1e-9)
    assert found.risk_.value == pytest.approx(alone.risk_.value, abs=1e-9)


def test_the_progress_bar_names_the_candidates_at_work(rng, monkeypatch):
    seen = []

    @contextmanager
    def bar(title, total, *, show, text):
        seen.append(text)
        yield lambda words: seen.append(words())

    monkeypatch.setattr(stack_jobs, "progress_bar", bar)
    X, ids = rng.normal(size=(80, 2)), np.repeat(np.arange(20), 4)
    y = (X[:, 0] > 0).reshape(20, 4).mean(axis=1)[ids]
    candidates = [("ridge", BagRidgeClassifier()), ("logistic", BagLogisticClassifier())]
    BagStackingClassifier(candidates, cv=2, verbose=True, grouping="random").fit(X, y, bags=ids)
    assert seen[:5] == ["ridge", "ridge", "logistic", "logistic", ""]


def test_two_bags_or_two_blocks(rng):
    X = rng.normal(size=(400, 2))
    bags = np.arange(400) // 10
    y = (X[:, 0] > 0).reshape(40, 10).mean(axis=1)[bags]
    clf = BagStackingClassifier(quick=True, grouping="random", random_state=0)
    for blocks in (bags // 20, np.zeros(400)):
        assert clf.fit(X, y, bags=bags, blocks=blocks).predict(X).shape == (400,)
    with pytest.raises(BagDataError, match="two bags beside each held-out fold, got 2 bags"):
        clf.fit(X[:20], y[:20], bags=bags[:20])


class Watcher(LogisticRegression):
    """A classifier that takes bags, and keeps what it was told."""

    def fit(self, X, y, *, bags=None, noise_variance=None, task=None):
        self.told_ = (task, None if noise_variance is None else np.shape(noise_variance))
        return super().fit(X, np.asarray(y) > np.median(y))


def test_candidates_of_others_are_told_of_noise(rng):
    X = rng.normal(size=(400, 2))
    bags = np.arange(400) // 10
    y = ((X[:, 0] > 0).reshape(40, 10).mean(axis=1) + 0.05 * rng.normal(size=40))[bags]
    clf = BagStackingClassifier([("watcher", Watcher())], grouping="random", random_state=0)
    clf.fit(X, y, bags=bags, noise_variance=0.0025)
    assert clf.candidates_["watcher"].told_ == ("binary", (400,))


def test_a_candidate_that_takes_no_bags_is_refused(rng):
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="BagEMClassifier"):
        BagStackingClassifier([("labels", LogisticRegression())]).fit(X, X[:, 0] > 0)
