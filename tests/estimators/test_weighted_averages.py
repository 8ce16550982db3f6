"""Weighted averages, and rates of events per exposure."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.metrics import d2_tweedie_score, mean_poisson_deviance
from sklearn.utils.estimator_checks import parametrize_with_checks

import unbag
from unbag import BagBoostingRegressor, BagPoissonRegressor, BagRegressor, BagRidgeRegressor, Bags
from unbag.errors import BagDataError
from unbag.estimators.gradients import BagGradients, EventGradients
from unbag.evaluation.amounts import evaluate_amounts

TREES = BagBoostingRegressor(
    loss="poisson", n_estimators=60, cv=0, n_runs=1, reg_lambda=0.1, random_state=0
)
LINEAR = BagPoissonRegressor(random_state=0)


@parametrize_with_checks([LINEAR, TREES])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def events(rng, *, n_bags=300, size=10, n_features=2):
    X = rng.normal(size=(n_bags * size, n_features))
    exposure = rng.uniform(0.2, 2.0, size=len(X))
    rates = np.exp(0.8 * X[:, 0] - 0.5)
    numbers = rng.poisson(exposure * rates)
    ids = np.repeat(np.arange(n_bags), size)
    observed = np.bincount(ids, numbers) / np.bincount(ids, exposure)
    return X, exposure, rates, numbers, ids, observed


def some_bags(rng, **change):
    given = {"offsets": [0, 2, 5, 9], "proportions": rng.uniform(1, 3, size=3), "task": "amount"}
    weights = rng.uniform(0.5, 2, size=9)
    return Bags.from_arrays(rng.normal(size=(9, 1)), weights=weights, **given | change)


@pytest.mark.parametrize("model", [BagRidgeRegressor(), LINEAR, TREES], ids=repr)
def test_equal_weights_are_no_weights(model, rng):
    X, _, _, numbers, ids, _ = events(rng)
    y = numbers.reshape(300, 10).mean(axis=1)[ids]
    plain = model.fit(X, y, bags=ids).predict(X)
    weighted = model.fit(X, y, bags=ids, weights=np.full(len(X), 1.0)).predict(X)
    np.testing.assert_allclose(weighted, plain, rtol=1e-9)
    score = model.score(X, y, bags=ids)
    assert model.score(X, y, bags=ids, weights=np.full(len(X), 7.0)) == pytest.approx(score)


def test_the_ridge_is_least_squares_on_weighted_means(rng):
    X, weights, _, numbers, ids, _ = events(rng)
    shares = weights / np.bincount(ids, weights)[ids]
    averages = np.bincount(ids, shares * numbers)
    means = np.stack([np.bincount(ids, shares * column) for column in X.T], axis=1)
    sizes = 1 / np.bincount(ids, shares**2)
    fitted = BagRidgeRegressor(penalties=[0.0]).fit(X, averages[ids], bags=ids, weights=weights)
    wanted = LinearRegression().fit(means, averages, sample_weight=sizes)
    np.testing.assert_allclose(fitted.coef_, wanted.coef_)
    unweighted = BagRidgeRegressor(penalties=[0.0]).fit(X, averages[ids], bags=ids)
    assert np.abs(unweighted.coef_ - wanted.coef_).max() > 1e-3


def test_sums_are_divided_by_weights_and_rows_may_be_shuffled(rng):
    X, exposure, _, numbers, ids, observed = events(rng)
    order = rng.permutation(len(X))
    totals = dict(enumerate(np.bincount(ids, numbers)))
    shuffled = Bags.from_arrays(
        X[order], bags=ids[order], sums=totals, weights=exposure[order], task="amount"
    )
    np.testing.assert_allclose(shuffled.proportions, observed[shuffled.ids])
    for model in (BagRidgeRegressor(), BagPoissonRegressor(penalties=[1.0])):
        wanted = model.fit(X, observed[ids], bags=ids, weights=exposure).coef_
        np.testing.assert_allclose(model.fit_bags(shuffled).coef_, wanted, rtol=1e-4)
    some = shuffled.take(np.arange(100)[::-1])
    np.testing.assert_allclose(some.mean(X[order][:, 0]), shuffled.mean(X[order][:, 0])[99::-1])


def slopes_of(loss, raw):
    return [(loss(raw + step) - loss(raw - step)) / 2e-6 for step in 1e-6 * np.eye(9)[..., None]]


def test_gradients_of_weighted_averages_are_those_of_the_loss(rng):
    bags, raw = some_bags(rng), rng.normal(size=(9, 1))

    def loss(scores):
        residuals = bags.mean(scores) - bags.proportions[:, None]
        sizes = bags.effective_sizes
        mean = np.average(residuals[:, 0], weights=sizes)
        spread = (sizes * (residuals[:, 0] - mean) ** 2).sum()
        return 9 * (mean**2 + (1 - 1 / 9) * spread / 2)

    found = BagGradients(bags, learning_rate=0.1)(raw)[0][:, 0]
    np.testing.assert_allclose(found, slopes_of(loss, raw), atol=1e-5)


def minus_log_likelihood(bags, log_rates):
    means = bags.totals * bags.mean(np.exp(log_rates))
    return (means - bags.totals * bags.proportions * np.log(means)).sum()


def test_gradients_of_events_are_those_of_the_likelihood(rng):
    bags, raw = some_bags(rng), rng.normal(size=(9, 1))
    wanted = slopes_of(lambda r: minus_log_likelihood(bags, r[:, 0]), raw)
    found = EventGradients(bags, learning_rate=0.1)
    np.testing.assert_allclose(found.gradient(raw)[:, 0], wanted, atol=1e-5)
    assert not np.allclose(found(raw)[0][:, 0], wanted, atol=1e-2)  # shortened on purpose


def test_bags_of_one_are_poisson_regression(rng):
    X, exposure, _, numbers, *_ = events(rng, n_bags=50)
    fitted = BagPoissonRegressor(penalties=[3.0]).fit(X, numbers / exposure, weights=exposure)
    scale = X.std(axis=0)
    wanted = PoissonRegressor(alpha=3.0 / exposure.sum(), tol=1e-10)
    wanted.fit(X / scale, numbers / exposure, sample_weight=exposure)
    np.testing.assert_allclose(fitted.coef_ * scale, wanted.coef_, rtol=2e-3)
    np.testing.assert_allclose(fitted.predict(X), wanted.predict(X / scale), rtol=2e-3)


def test_it_maximises_the_likelihood_of_the_bags(rng):
    X, exposure, _, _, ids, observed = events(rng, n_bags=80)
    fitted = BagPoissonRegressor(penalties=[0.0])
    fitted.fit(X, observed[ids], bags=ids, weights=exposure)
    bags = Bags.from_arrays(X, bags=ids, y=observed[ids], weights=exposure, task="amount")
    direct = optimize.minimize(
        lambda w: minus_log_likelihood(bags, X @ w[:2] + w[2]), np.zeros(3), tol=1e-8
    )
    np.testing.assert_allclose([*fitted.coef_, fitted.intercept_], direct.x, atol=5e-3)
    of_means = np.stack([bags.mean(column) for column in X.T], axis=1)
    ecological = PoissonRegressor(alpha=0).fit(of_means, observed, sample_weight=bags.totals)
    assert np.abs(ecological.coef_ - direct.x[:2]).max() > 5e-3  # a model of bag means is another


@pytest.mark.parametrize("model", [LINEAR, TREES], ids=repr)
def test_rates_are_learned_saved_and_judged(model, rng, tmp_path):
    X, exposure, _, _, ids, observed = events(rng, n_bags=600)
    fitted = model.fit(X, observed[ids], bags=ids, weights=exposure)
    loaded = type(model).load(fitted.save(tmp_path / "model"))
    X, exposure, rates, _, ids, observed = events(rng, n_bags=400)
    np.testing.assert_allclose(loaded.predict(X), fitted.predict(X))
    assert np.corrcoef(fitted.predict(X), rates)[0, 1] > 0.8
    found = unbag.evaluate(fitted, X, observed[ids], bags=ids, weights=exposure)
    assert found["explained_deviance"].value > 0.2
    right = unbag.evaluate(rates, None, observed[ids], bags=ids, weights=exposure, task="amount")
    assert right["deviance"].low < 1 < right["deviance"].high
    wrong = unbag.evaluate(
        2 * rates, None, observed[ids], bags=ids, weights=exposure, task="amount"
    )
    assert wrong["deviance"].low > 2 and wrong["slope"].high < 0.7


def test_the_deviance_of_bags_of_one_is_scikit_learns(rng):
    _, _, rates, numbers, *_ = events(rng, n_bags=30)
    found = unbag.evaluate(rates, None, numbers, task="amount")
    assert found["deviance"].value == pytest.approx(mean_poisson_deviance(numbers, rates))
    wanted = d2_tweedie_score(numbers, rates, power=1)
    assert found["explained_deviance"].value == pytest.approx(wanted)
    fractions = unbag.evaluate(rates, None, numbers + 0.5, task="amount")
    assert "deviance" not in set(fractions) and "slope" in set(fractions)


VALUES, CHANCES = np.array([-2.0, 0.5, 7.0]), np.array([0.2, 0.5, 0.3])


def test_the_squared_error_of_weighted_averages_is_unbiased_by_enumeration():
    weights = np.array([1.0, 0.5, 2.0, 1.0, 3.0, 0.2])
    wanted = CHANCES @ (0.5 * VALUES**2 - 1 - VALUES) ** 2
    total = unweighted = 0.0
    for draw in product(range(3), repeat=6):
        amounts, chance = VALUES[list(draw)], CHANCES[list(draw)].prod()
        parts = zip(*(np.split(v, [1, 3]) for v in (amounts, weights)), strict=True)
        averages = [np.average(a, weights=w) for a, w in parts]
        given = {"offsets": [0, 1, 3, 6], "proportions": averages, "task": "amount"}
        f = 0.5 * amounts**2 - 1
        bags = Bags.from_arrays(np.zeros(6), weights=weights, **given)
        total += chance * evaluate_amounts(f, bags)["mse"].value
        bags = Bags.from_arrays(np.zeros(6), **given)
        unweighted += chance * evaluate_amounts(f, bags)["mse"].value
    assert total == pytest.approx(wanted)
    assert abs(unweighted - wanted) > 0.02 * wanted  # the check sees weights that are left out


def good(rng, **change):
    X, exposure, _, _, ids, observed = events(rng, n_bags=6)
    return {"X": X, "y": observed[ids], "bags": ids, "weights": exposure} | change


MALFORMED = {
    "short weights": (LINEAR, {"weights": np.ones(59)}, "60 finite numbers above zero"),
    "a weight of zero": (LINEAR, {"weights": np.arange(60)}, "of which 59 are such"),
    "negative weights": (BagRidgeRegressor(), {"weights": -np.ones(60)}, "above zero"),
    "NaN weights": (BagRidgeRegressor(), {"weights": np.full(60, np.nan)}, "of which 0"),
    "infinite weights": (LINEAR, {"weights": np.full(60, np.inf)}, "finite numbers above zero"),
    "words for weights": (LINEAR, {"weights": ["much"] * 60}, "weights must hold numbers"),
    "weights of bags": (LINEAR, {"weights": np.ones(6)}, "one per instance"),
    "weights of two axes": (LINEAR, {"weights": np.ones((60, 2))}, "shape \\(60, 2\\)"),
    "weights for a net": (BagRegressor(), {}, "weights are not for nets"),
    "negative rates": (LINEAR, {"y": np.repeat(np.arange(6) - 1.0, 10)}, "bag 0 has -1"),
    "negative rates for trees": (TREES, {"y": np.repeat(np.arange(6) - 1.0, 10)}, "not negative"),
    "noise in events": (LINEAR, {"noise_variance": 0.1}, "not for numbers of events"),
    "noise in events for trees": (TREES, {"noise_variance": 0.1}, "not for numbers of events"),
    "no events": (LINEAR, {"y": np.zeros(60)}, "all 6 bags have the average 0"),
    "unknown loss": (BagBoostingRegressor(loss="gamma"), {}, "loss must be"),
    "negative penalties": (BagPoissonRegressor(penalties=[-1]), {}, "penalties must be"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_input_is_refused_in_words(case, rng):
    model, change, words = MALFORMED[case]
    arguments = good(rng, **change)
    with pytest.raises(ValueError, match=words):
        model.fit(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_weights_are_for_amounts_only(rng):
    for given in ({"task": "binary"}, {"task": None}):
        with pytest.raises(BagDataError, match="weights need task='amount'"):
            some_bags(rng, **given, proportions=[0.1, 0.2, 0.3])
    with pytest.raises(BagDataError, match="Pass no y, bags"):
        unbag.evaluate(np.ones(9), some_bags(rng), weights=np.ones(9))
