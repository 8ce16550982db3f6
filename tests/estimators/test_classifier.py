"""What only `BagClassifier` does: bags set aside, early stopping, a risk after fit."""

from dataclasses import replace
from html import escape

import numpy as np
import pytest
import torch

from unbag import (
    BagClassifier,
    BagRegressor,
    BagRidgeClassifier,
    Bags,
    BagTarget,
    estimate_risk,
    make_bags,
)
from unbag.bags.holdout import hold_out_bags
from unbag.errors import BagDataError, BagDataWarning, TrainingError
from unbag.estimators.net_blend import risk_terms, shrunken
from unbag.estimators.net_fit import held_out_parts
from unbag.evaluation.risk import pairwise_value


@pytest.fixture
def bagged(rng):
    X = rng.normal(size=(3000, 4)).astype("float32")
    labels = (X[:, 0] + 0.3 * rng.normal(size=3000) > 0).astype(int)
    bags = make_bags(X, labels, bag_size=10, seed=0)
    return X, BagTarget(bags.bag_of_row, bags.proportions[bags.bag_of_row]), labels


def test_a_fit_carries_its_risk_by_default(bagged, rng):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=10, random_state=0).fit(X, y)
    fresh = rng.normal(size=(20_000, 4)).astype("float32")
    truth = np.mean(clf.predict(fresh) != (fresh[:, 0] + 0.3 * rng.normal(size=20_000) > 0))
    assert clf.risk_.n_bags == 300
    assert abs(clf.risk_.value - truth) < 4 * clf.risk_.standard_error
    assert len(clf.result_.history["loss"]) <= 10


def test_without_a_blend_the_bags_held_out_join_for_half_as_many_epochs(bagged):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=10, blend_ridge=False, random_state=0).fit(X, y)
    assert clf.risk_.n_bags == 60
    assert len(clf.result_.history["loss"]) == 15


def test_the_bags_set_aside_are_measured_on_before_they_are_trained_on(bagged):
    X, _, labels = bagged
    bags = make_bags(X, labels, bag_size=10, seed=0)
    [aside] = held_out_parts(bags, share=0.2, seed=0)
    flipped = bags.proportions.copy()
    flipped[aside] = 1 - flipped[aside]
    fits = [
        BagClassifier(n_nets=1, max_epochs=10, blend_ridge=False, random_state=0).fit_bags(data)
        for data in (bags, replace(bags, proportions=flipped))
    ]
    # A net that had seen the flipped bags would not be wrong on them so often.
    assert fits[0].risk_.value < 0.2 and fits[1].risk_.value > 0.5
    # In the end they are trained on all the same.
    assert not np.allclose(fits[0].predict_proba(X), fits[1].predict_proba(X))


@pytest.mark.parametrize("n_bags", [30, 300])
def test_without_refit_the_stated_error_is_of_the_classifier_returned(bagged, n_bags):
    X, _, labels = bagged
    bags = make_bags(X[: 10 * n_bags], labels[: 10 * n_bags], bag_size=10, seed=0)
    aside = hold_out_bags(bags.sizes, judge=0.2, seed=0).judging
    clf = BagClassifier(max_epochs=5, refit=False, random_state=0).fit_bags(bags)
    assert clf.risk_is_final_ and "held-out bags; always" in str(clf)
    own = estimate_risk(clf.predict_proba(bags.X), bags.take(aside))
    assert abs(clf.risk_.value - own.value) < 1e-6


def many_features(rng, n):
    X = rng.normal(size=(n, 20)).astype("float32")
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


@pytest.mark.statistical
def test_the_stated_error_is_unbiased_without_refit(seed):
    """And an estimate from bags that were trained on, which is not, is rejected."""
    stated, trained_on = [], []
    for draw in range(12):
        rng = np.random.default_rng([seed, draw])
        X, labels = many_features(rng, 600)
        bags = make_bags(X, labels, bag_size=10, seed=draw)
        clf = BagClassifier(n_nets=1, max_epochs=10, refit=False, random_state=draw).fit_bags(bags)
        fresh, truth = many_features(rng, 5000)
        error = np.mean(clf.predict(fresh) != truth)
        stated.append(clf.risk_.value - error)
        trained_on.append(estimate_risk(clf.predict_proba(bags.X), bags).value - error)
    assert abs(in_standard_errors(stated)) < 4
    assert in_standard_errors(trained_on) < -4


def in_standard_errors(gaps):
    return np.mean(gaps) / np.std(gaps, ddof=1) * len(gaps) ** 0.5


@pytest.mark.parametrize("sizes", [np.full(40, 5), np.arange(1, 41)], ids=["equal", "unequal"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_weights_move_as_far_as_the_bags_are_certain(rng, sizes, n_outputs):
    truth = rng.random((sizes.sum(), n_outputs))
    ids = np.repeat(np.arange(40), sizes)
    means = np.stack([truth[ids == i].mean(axis=0) for i in range(40)])
    bags = Bags(np.zeros((len(ids), 1)), np.arange(len(ids)), sizes, means, list(range(40)))
    scores = np.stack([truth, np.broadcast_to(truth.mean(axis=0), truth.shape)])
    first, second, half = np.array([1.0, 0]), np.array([0, 1.0]), np.array([0.5, 0.5])
    assert shrunken(first, half, scores, bags, n_errors=1)[0] > 0.85
    moved = shrunken(first, half, scores, bags, n_errors=2)
    assert 0.5 < moved[0] < shrunken(first, half, scores, bags, n_errors=1)[0]
    # What is worse, or as good, moves nothing.
    np.testing.assert_array_equal(shrunken(second, half, scores, bags, n_errors=1), half)
    np.testing.assert_array_equal(shrunken(first, second, scores[[0, 0]], bags, n_errors=1), second)


def test_risks_of_a_blend_are_the_pairwise_ones(rng):
    """The weight rests on the same estimate as `estimate_risk`."""
    sizes = np.arange(1, 11)
    scores, n = rng.random(sizes.sum()), sizes.sum()
    bags = Bags(np.zeros((n, 1)), np.arange(n), sizes, rng.random(10), list(range(10)))
    residuals = np.array([part.mean() for part in np.split(scores, np.cumsum(sizes)[:-1])])
    expected = pairwise_value(residuals - bags.proportions, sizes)
    assert abs(risk_terms(scores, bags).mean() - expected) < 1e-12


def test_nets_and_ridges_are_mixed_as_stated(bagged, tmp_path):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=3, random_state=0).fit(X, y)
    blend = clf.result_.model
    assert abs(float(blend.weights.sum()) - 1) < 1e-6
    ridge = BagRidgeClassifier().fit(X, y).predict_proba(X)[:, 1]
    inputs = torch.from_numpy(X).double()
    with torch.no_grad():
        plain, radial = (model.double()(inputs)[:, 0].numpy() for model in blend.models)
        nets = blend.net.double()(inputs).sigmoid().numpy()[:, 0]
    np.testing.assert_allclose(plain, ridge, atol=1e-4)
    mixed = np.tensordot(blend.weights.numpy(), np.stack([plain, radial, nets]), axes=1)
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], mixed, atol=1e-4)
    again = BagClassifier.load(clf.save(tmp_path / "m"))
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), atol=1e-6)


def test_with_few_bags_the_blend_is_no_worse_than_ridge(rng):
    """A net alone memorises 20 bags; the truth is linear."""
    X = rng.normal(size=(4000, 30)).astype("float32")
    labels = (X @ rng.normal(size=30) + rng.normal(size=4000) > 0).astype(int)
    bags = make_bags(X[:1000], labels[:1000], bag_size=50, seed=0)
    fits = [
        BagClassifier(max_epochs=30, random_state=0),
        BagClassifier(max_epochs=30, n_nets=1, blend_ridge=False, random_state=0),
    ]
    errors = [np.mean(clf.fit_bags(bags).predict(X[1000:]) != labels[1000:]) for clf in fits]
    ridge = BagRidgeClassifier().fit_bags(bags)
    assert errors[0] < errors[1]
    assert errors[0] < np.mean(ridge.predict(X[1000:]) != labels[1000:]) + 0.02


@pytest.mark.parametrize(
    ("rule", "weighed"),
    [("debiased_square", False), ("easy_log", False), ("count_likelihood", True)],
)
def test_noise_moves_the_risk_and_the_nets_of_counts(bagged, rule, weighed):
    X, y, _ = bagged
    noise = np.where(y.bags < 150, 0.0, 0.2)
    fits = [
        BagClassifier(rule, n_nets=1, blend_ridge=False, max_epochs=2, random_state=0).fit(
            X, y, noise_variance=variance
        )
        for variance in (None, noise)
    ]
    same = np.array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))
    assert same is not weighed
    assert fits[0].risk_.value != fits[1].risk_.value


def test_few_bags_are_cross_fitted(rng):
    X = rng.normal(size=(600, 3)).astype("float32")
    bags = make_bags(X, X[:, 0] > 0, bag_size=20, seed=0)
    clf = BagClassifier(max_epochs=10, random_state=0).fit_bags(bags)
    assert clf.risk_.n_bags == 30


@pytest.mark.parametrize("n_bags", [10, 23, 47, 50, 1000])
def test_every_part_leaves_bags_on_both_sides(n_bags):
    bags = make_bags(np.zeros((n_bags, 1)), np.arange(n_bags) % 2, bag_size=1, seed=0)
    parts = held_out_parts(bags, share=0.2, seed=0)
    assert len(parts) == (1 if n_bags >= 50 else 5)
    assert all(2 <= len(part) <= n_bags / 2 for part in parts)
    if len(parts) > 1:
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n_bags))


def test_a_handful_of_bags_has_no_risk(rng):
    X = rng.normal(size=(90, 3)).astype("float32")
    bags = make_bags(X, X[:, 0] > 0, bag_size=10, seed=0)
    assert BagClassifier(max_epochs=2, random_state=0).fit_bags(bags).risk_ is None


@pytest.mark.parametrize("off", [0, None])
def test_measuring_can_be_switched_off(bagged, off):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=2, validation_share=off, random_state=0).fit(X, y)
    assert clf.risk_ is None
    assert len(clf.result_.history["loss"]) == 2
    assert str(clf) == repr(clf)


def test_a_fitted_classifier_says_its_error(bagged):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=2, random_state=0)
    before = repr(clf)
    assert str(clf) == before and "estimated error" not in clf._repr_html_()
    clf.fit(X, y)
    line = str(clf).removeprefix(before).strip()
    assert line.startswith("estimated error")
    assert "from 300 held-out bags, by nets not trained on them; always 'yes'" in line
    assert repr(clf) == before
    shown, bundle = f"<p>{escape(line)}</p>", clf._repr_mimebundle_()
    assert shown in clf._repr_html_() and shown in bundle["text/html"]
    assert line in bundle["text/plain"]


def test_a_share_beyond_one_is_refused(bagged):
    X, y, _ = bagged
    with pytest.raises(ValueError, match="validation_share"):
        BagClassifier(validation_share=1.5).fit(X, y)


def test_the_risk_is_saved(bagged, tmp_path):
    X, y, _ = bagged
    clf = BagClassifier(max_epochs=2, validation_share=0.3, random_state=0).fit(X, y)
    assert BagClassifier.load(clf.save(tmp_path / "m")).risk_ == clf.risk_


def test_a_seed_decides_the_fit(bagged):
    X, y, _ = bagged
    options = {"max_epochs": 2, "blend_ridge": False}
    one, two = (BagClassifier(**options, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    state = np.random.RandomState(0)
    other = BagClassifier(**options, random_state=state).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), one.predict_proba(X))


@pytest.fixture
def pixels(rng):
    X = rng.integers(0, 256, size=(600, 6), dtype=np.uint8)
    return X, (X[:, 0] > 127).astype(int)


@pytest.mark.parametrize("model", ["mlp", "linear"])
def test_bytes_in_a_table_are_numbers(pixels, model):
    X, labels = pixels
    settings = {"model": model, "max_epochs": 3, "random_state": 0}
    of_bytes, of_floats = (BagClassifier(**settings).fit(A, labels) for A in (X, X.astype(float)))
    expected = of_bytes.predict_proba(X)
    np.testing.assert_array_equal(of_bytes.predict_proba(X.astype(float)), expected)
    np.testing.assert_array_equal(of_floats.predict_proba(X), expected)


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3)])
def test_bytes_in_images_are_pixels_and_no_other_kind_is_predicted(pixels, shape, tmp_path):
    X, labels = pixels[0].reshape(-1, *shape), pixels[1]
    shares = X.astype("float32") / np.float32(255)
    settings = {"max_epochs": 3, "random_state": 0}
    of_bytes, of_shares = (BagClassifier(**settings).fit(A, labels) for A in (X, shares))
    np.testing.assert_array_equal(of_bytes.predict_proba(X), of_shares.predict_proba(shares))
    for clf, other, wanted in ((of_bytes, shares, "bytes"), (of_shares, X, "not bytes")):
        for model in (clf, BagClassifier.load(clf.save(tmp_path / "net"))):
            with pytest.raises(BagDataError, match=f"was fitted on images that were {wanted},"):
                model.predict(other)


def test_the_kind_of_images_is_known_of_a_bags_too(pixels):
    X, labels = pixels[0].reshape(-1, 1, 2, 3), pixels[1]
    clf = BagClassifier(max_epochs=2).fit_bags(make_bags(X, labels, bag_size=5, seed=0))
    clf.predict(X)
    with pytest.raises(BagDataError, match="were bytes"):
        clf.predict(X / 255)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_digits_lost_to_single_precision_are_said(rng, dtype):
    X = (10 * rng.normal(size=(200, 2))).astype(dtype)
    labels, clf = X[:, 0] > 0, BagClassifier(max_epochs=1, random_state=0)
    far = X + np.array([0, 1_000_000_000], dtype)
    with pytest.warns(BagDataWarning, match="feature 1 .* steps of 64 .*1 such"):
        clf.fit(far, labels)
    with pytest.warns(BagDataWarning, match="feature 1"):
        clf.fit_bags(make_bags(far, labels, bag_size=5, seed=0))
    amounts = Bags.from_arrays(
        far, bags=np.arange(200) // 5, y=np.arange(200) // 5.0, task="amount"
    )
    with pytest.warns(BagDataWarning, match="feature 1"):
        BagRegressor(max_epochs=1, random_state=0).fit_bags(amounts)


def test_digits_that_suffice_are_not_complained_of(rng):
    X = rng.normal(size=(200, 3)) + np.array([0.1, 100_000, -100_000])
    X[:, 0] = 0.1  # constant, but the computed deviation is not quite zero
    BagClassifier(max_epochs=1, random_state=0).fit(X, X[:, 1] > 100_000)


@pytest.mark.parametrize("share", [0, 0.2])
def test_a_net_that_is_lost_is_said_to_be(rng, share):
    X = rng.normal(size=(400, 2))
    bags, y = np.repeat(np.arange(40), 10), np.repeat(np.arange(40) % 11 / 10, 10)
    clf = BagClassifier(learning_rate=1e30, max_epochs=5, validation_share=share, random_state=0)
    with pytest.raises(TrainingError, match=r"not finite.*learning_rate"):
        clf.fit(X, y, bags=bags)


def test_a_net_itself_is_no_model():
    with pytest.raises(TypeError, match="must be a function"):
        BagClassifier(model=torch.nn.Linear(2, 1)).fit(np.zeros((4, 2)), [0, 1, 0, 1])
