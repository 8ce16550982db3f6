"""Regressors of single amounts from averages of bags, and their evaluation."""

from itertools import product

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import unbag
from unbag import (
    BagBatch,
    BagBoostingRegressor,
    BagKFold,
    BagRegressor,
    BagRidgeRegressor,
    Bags,
    BagTarget,
)
from unbag.errors import BagDataError
from unbag.estimators.gradients import BagGradients
from unbag.evaluation.amounts import evaluate_amounts
from unbag.models import BlendedNet, LinearScores
from unbag.rules import DebiasedSquare

BOOSTING = BagBoostingRegressor(n_estimators=60, cv=0, n_runs=1, reg_lambda=1.0, random_state=0)
NET = BagRegressor(max_epochs=30, n_nets=1, random_state=0)
EVERY_REGRESSOR = [BagRidgeRegressor(), BOOSTING, NET]
every_regressor = pytest.mark.parametrize(
    "model", EVERY_REGRESSOR, ids=lambda model: type(model).__name__
)


@parametrize_with_checks(EVERY_REGRESSOR)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def bagged(rng, *, n_bags=150, size=10, scale=1.0, noise=1.0):
    X = rng.normal(size=(n_bags * size, 3))
    amounts = scale * (100 + 3 * X[:, 0] - 2 * X[:, 1] + noise * rng.normal(size=len(X)))
    ids = np.repeat(np.arange(n_bags), size)
    return X, amounts, ids, amounts.reshape(n_bags, size).mean(axis=1)


@every_regressor
def test_it_learns_amounts_and_tells_r2_without_them(model, rng):
    X, amounts, ids, averages = bagged(rng)
    fitted = model.fit(X, averages[ids], bags=ids)
    X, amounts, ids, averages = bagged(rng, n_bags=400)
    true = fitted.score(X, amounts)
    assert true > 0.7
    found = unbag.evaluate(fitted, X, averages[ids], bags=ids)
    assert fitted.score(X, averages[ids], bags=ids) == pytest.approx(found["r2"].value)
    mse = np.mean((fitted.predict(X) - amounts) ** 2)
    assert found["r2"].value == pytest.approx(true, abs=4 * found["r2"].standard_error)
    assert found["mse"].value == pytest.approx(mse, abs=4 * found["mse"].standard_error)
    assert "mse" in str(found) and set(found.to_dict()) == {"mse", "r2", "bias", "slope"}
    assert found["slope"].value == pytest.approx(1, abs=0.3)


@every_regressor
def test_units_of_the_amounts_change_nothing_else(model, rng):
    X, _, ids, averages = bagged(rng)
    plain = model.fit(X, averages[ids], bags=ids).predict(X)
    scaled = model.fit(X, 1024 * averages[ids], bags=ids, noise_variance=0.0).predict(X)
    np.testing.assert_allclose(scaled, 1024 * plain, rtol=1e-5)


@every_regressor
def test_sums_and_targets_give_the_same_model(model, rng):
    X, _, ids, averages = bagged(rng)
    wanted = model.fit(X, averages[ids], bags=ids).predict(X)
    sums = Bags.from_arrays(X, bags=ids, sums=dict(enumerate(10 * averages)))
    assert sums.task == "amount"
    np.testing.assert_allclose(model.fit_bags(sums).predict(X), wanted, rtol=1e-6)
    target = BagTarget(ids, averages[ids])
    np.testing.assert_allclose(model.fit(X, target).predict(X), wanted, rtol=1e-6)


@every_regressor
def test_it_is_saved_and_searched(model, rng, tmp_path):
    X, _, ids, averages = bagged(rng)
    fitted = model.fit(X, averages[ids], bags=ids)
    loaded = type(model).load(fitted.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    pipeline = make_pipeline(StandardScaler(), BagRidgeRegressor())
    grid = {"bagridgeregressor__penalties": [[1e-3], [1e4]]}
    search = GridSearchCV(pipeline, grid, cv=BagKFold(3)).fit(X, BagTarget(ids, averages[ids]))
    assert search.best_params_["bagridgeregressor__penalties"] == [1e-3]


def test_the_net_leaves_linearity_behind_and_knows_its_error(rng):
    def world(n_bags):
        X = rng.normal(size=(10 * n_bags, 2))
        amounts = 500 + 40 * np.abs(X[:, 0]) + 5 * rng.normal(size=len(X))
        return X, amounts, np.repeat(np.arange(n_bags), 10)

    X, amounts, ids = world(200)
    averages = amounts.reshape(-1, 10).mean(axis=1)
    net = BagRegressor(max_epochs=40, n_nets=2, random_state=0).fit(X, averages[ids], bags=ids)
    ridge = BagRidgeRegressor().fit(X, averages[ids], bags=ids)
    X, amounts, _ = world(400)
    assert ridge.score(X, amounts) < 0.1 and net.score(X, amounts) > 0.7
    mse = np.mean((net.predict(X) - amounts) ** 2)
    assert net.risk_.low * 0.8 < mse < net.risk_.high  # before a fifth of the bags joined


def test_amounts_of_a_net_are_mixed_with_the_ridge_as_they_are(rng):
    linear, net = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    scores = LinearScores(torch.nn.Identity(), linear, task="amount")
    x = 100 * torch.randn(5, 2)
    wanted = 0.25 * net(x) + 0.75 * linear(x)
    mixed = BlendedNet(net, [scores], [0.75, 0.25], task="amount")
    torch.testing.assert_close(mixed(x), wanted)
    probabilities = BlendedNet(net, [scores], [0.75, 0.25])  # what mixing labels would give
    assert not torch.allclose(probabilities(x), wanted)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_folds_of_bags_choose_the_number_of_trees(loss, rng):
    """Trees that go on learn the chance composition of the bags, and end below the mean."""
    X = rng.normal(size=(3000, 6))
    amounts = rng.poisson(np.exp(0.15 * X[:, 0]), size=3000)
    ids = np.repeat(np.arange(150), 20)
    averages = amounts.reshape(150, 20).mean(axis=1)
    found = {}
    for cv in (0, 3):
        model = BagBoostingRegressor(loss=loss, cv=cv, n_estimators=150, n_runs=1, random_state=0)
        found[cv] = model.fit(X, averages[ids], bags=ids)
    assert found[0].n_trees_ == 150 and found[3].n_trees_ < 60
    assert len(found[3].held_out_risk_) == 150 and len(found[0].held_out_risk_) == 0
    assert found[0].score(X, amounts) < -0.02 < found[3].score(X, amounts)


def test_bags_of_one_are_ordinary_ridge(rng):
    X, amounts, *_ = bagged(rng, n_bags=40)
    fitted = BagRidgeRegressor(penalties=[0.0]).fit(X, amounts)
    np.testing.assert_allclose(fitted.coef_, LinearRegression().fit(X, amounts).coef_)
    penalised = BagRidgeRegressor(penalties=[0.5], standardise=False).fit(X, amounts)
    unit = np.linalg.eigvalsh(np.cov(X.T, ddof=0)).mean()
    wanted = Ridge(alpha=0.5 * unit * len(X)).fit(X, amounts)
    np.testing.assert_allclose(penalised.coef_, wanted.coef_)


def test_noisy_bags_weigh_as_their_variance_says(rng):
    X, _, ids, averages = bagged(rng, n_bags=60, scale=50.0)
    variance = np.where(np.arange(60) % 2, 1e9, 0.0)
    broken = averages + np.sqrt(variance) * rng.normal(size=60)
    fitted = BagRidgeRegressor().fit(X, broken[ids], bags=ids, noise_variance=variance[ids])
    assert np.abs(fitted.coef_ / 50 - [3, -2, 0]).max() < 1


def test_gradients_of_amounts_are_those_of_the_loss(rng):
    bags = Bags.from_arrays(
        np.zeros((9, 1)), offsets=[0, 2, 5, 9], proportions=rng.normal(size=3), task="amount"
    )
    gradients, raw = BagGradients(bags, learning_rate=0.1), rng.normal(size=(9, 1))

    def loss(scores):
        residuals = bags.mean(scores) - bags.proportions[:, None]
        return 9 * unbag.evaluation.pairwise_value(residuals, bags.sizes)

    slopes = [(loss(raw + step) - loss(raw - step)) / 2e-6 for step in 1e-6 * np.eye(9)[..., None]]
    np.testing.assert_allclose(gradients(raw)[0][:, 0], slopes, atol=1e-5)


VALUES, CHANCES = np.array([-2.0, 0.5, 7.0]), np.array([0.2, 0.5, 0.3])
SIZES = [1, 2, 3]


def expectation(predict, estimate):
    """Of an estimate over all amounts of three bags, whose instances are i.i.d."""
    total = 0.0
    for draw in product(range(3), repeat=sum(SIZES)):
        amounts = VALUES[list(draw)]
        averages = [part.mean() for part in np.split(amounts, np.cumsum(SIZES)[:-1])]
        bags = Bags.from_arrays(
            np.zeros(6), offsets=[0, 1, 3, 6], proportions=averages, task="amount"
        )
        total += CHANCES[list(draw)].prod() * estimate(predict(amounts), bags)
    return total


def loss_of_the_net(predictions, bags):
    batch = BagBatch(torch.tensor(bags.proportions), torch.tensor(bags.sizes), task="amount")
    return float(DebiasedSquare()(torch.tensor(predictions), batch))


def test_the_squared_error_is_unbiased_by_enumeration():
    def predict(amounts):
        return 0.5 * amounts**2 - 1

    wanted = CHANCES @ (predict(VALUES) - VALUES) ** 2
    found = expectation(predict, lambda f, bags: evaluate_amounts(f, bags)["mse"].value)
    assert found == pytest.approx(wanted)
    loss = expectation(predict, loss_of_the_net)
    assert loss == pytest.approx(wanted, rel=1e-5)  # the rule computes in single precision
    naive = expectation(predict, lambda f, b: np.mean((b.mean(f) - b.proportions) ** 2))
    assert abs(naive - wanted) > 0.1 * wanted  # the check sees a biased estimate


def test_noise_is_taken_off_in_expectation(rng):
    found = []
    for _ in range(300):
        X, _, ids, averages = bagged(rng, n_bags=20)
        noisy = averages + 0.5 * rng.normal(size=20)
        prediction = 100 + 3 * X[:, 0] - 2 * X[:, 1] + 0.3
        bags = Bags.from_arrays(X, bags=ids, proportions=noisy, noise_variance=0.25, task="amount")
        found.append(evaluate_amounts(prediction, bags)["mse"].value)
    assert abs(np.mean(found) - 1.09) < 4 * np.std(found) / np.sqrt(300)


@pytest.mark.statistical
@pytest.mark.parametrize(("n_bags", "skewed"), [(30, False), (100, False), (100, True)])
def test_intervals_cover(n_bags, skewed, rng):
    truth = {"mse": 1.04, "r2": 1 - 1.04 / 5, "bias": 0.2}
    covered = {name: [] for name in truth}
    for _ in range(300):
        x = rng.normal(size=(n_bags, 12))
        errors = rng.exponential(size=x.shape) - 1 if skewed else rng.normal(size=x.shape)
        averages = (2 * x + errors).mean(axis=1)
        offsets = np.arange(0, x.size + 1, 12)
        bags = Bags.from_arrays(x.ravel(), offsets=offsets, proportions=averages, task="amount")
        found = evaluate_amounts(2 * x.ravel() + 0.2, bags)
        for name, value in truth.items():
            covered[name].append(found[name].low <= value <= found[name].high)
    for name, inside in covered.items():
        assert 0.895 < np.mean(inside) < 0.99, name  # four standard errors below 94.5 %


@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_noise_larger_than_the_amounts_leaves_intervals_that_cover_or_none(noise, rng):
    """Noise of one in averages of 20 hides amounts of variance 1.1 and errors of 0.17."""
    truth, covered = {"mse": 0.17, "r2": 1 - 0.17 / 1.09}, {"mse": [], "r2": []}
    for _ in range(300):
        x = rng.normal(size=(60, 20))
        averages = (x + 0.3 * rng.normal(size=x.shape)).mean(axis=1)
        bags = Bags.from_arrays(
            x.ravel(),
            offsets=np.arange(0, 1201, 20),
            proportions=averages + np.sqrt(noise) * rng.normal(size=60),
            noise_variance=noise,
            task="amount",
        )
        found = evaluate_amounts(0.8 * x.ravel() + 0.2, bags)
        assert "deviance" not in set(found)  # noisy averages tell no numbers of events
        for name, value in truth.items():
            if found[name].has_interval:
                covered[name].append(found[name].low <= value <= found[name].high)
    assert np.mean(covered["mse"]) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)
    if noise < 1:
        assert np.mean(covered["r2"]) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)
    assert (len(covered["r2"]) < 20) == (noise == 1)


def good(**change):
    X, _, ids, averages = bagged(np.random.default_rng(0), n_bags=6)
    return {"X": X, "y": averages[ids], "bags": ids} | change


def spoiled(name, value, row=3):
    values = good()[name].astype(float)
    values[row] = value
    return {name: values}


MALFORMED = {
    "no y": ({"y": None}, "target y is None"),
    "NaN in y": (spoiled("y", np.nan), "NaN"),
    "infinite y": (spoiled("y", np.inf), "infinity"),
    "words in y": ({"y": ["much"] * 60}, "could not convert"),
    "complex y": ({"y": np.ones(60) * 1j}, "Complex data not supported"),
    "two columns of y": ({"y": np.ones((60, 2))}, "1d array"),
    "short y": ({"y": np.ones(59)}, "same length"),
    "not constant in bags": (spoiled("y", 1e3), "must repeat one value"),
    "NaN in X": (spoiled("X", np.nan), "NaN"),
    "infinite X": (spoiled("X", np.inf), "infinity"),
    "X of one axis": ({"X": np.ones(60)}, "Expected 2D array"),
    "X of three axes": ({"X": np.ones((60, 2, 2))}, "dim 3"),
    "words in X": ({"X": np.array([["a"]] * 60)}, "convert|numbers"),
    "no features": ({"X": np.ones((60, 0))}, "0 feature"),
    "one bag": ({"bags": np.zeros(60), "y": np.ones(60)}, "at least two bags"),
    "short bags": ({"bags": np.zeros(59)}, "one id per instance"),
    "missing bag": (spoiled("bags", np.nan), "name a bag for every instance"),
    "bags of two axes": ({"bags": np.zeros((60, 2))}, "one bag id per instance"),
    "equal averages": ({"y": np.full(60, 7.5)}, "all 6 bags have the average 7.5"),
    "negative noise": ({"noise_variance": -1.0}, "not negative"),
    "NaN noise": ({"noise_variance": np.nan}, "finite"),
    "noise of bags": ({"noise_variance": np.ones(6)}, "one value per instance"),
    "rounded amounts": ({"noise_variance": "rounding"}, "variance h\\*\\*2 / 12"),
    "noise without bags": ({"bags": None, "noise_variance": 1.0}, "no bags were given"),
    "huge features": (spoiled("X", 1e150), "below 1e\\+140"),
    "bad penalties": ({"penalties": [-1.0]}, "penalties must be"),
    "no penalties": ({"penalties": []}, "penalties must be"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_input_is_refused_in_words(case):
    change, words = MALFORMED[case]
    arguments = good(**change)
    model = BagRidgeRegressor(penalties=arguments.pop("penalties", None))
    with pytest.raises(ValueError, match=words):
        model.fit(arguments.pop("X"), arguments.pop("y"), **arguments)


def amount_bags(**change):
    X, _, ids, averages = bagged(np.random.default_rng(0), n_bags=6)
    return Bags.from_arrays(**({"X": X, "bags": ids, "proportions": averages} | change))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: amount_bags(), "in \\[0, 1\\]"),
        (lambda: amount_bags(task="amount", proportions=np.ones((6, 2))), "one column"),
        (lambda: amount_bags(task="amount", proportions=[np.inf] * 6), "finite"),
        (lambda: amount_bags(proportions=None, sums=np.ones(5)), "sums must hold one value"),
        (lambda: amount_bags(sums=np.ones(6)), "exactly one of"),
        (lambda: amount_bags(sums=np.ones(6), counts=np.ones(6)), "no counts"),
        (lambda: amount_bags(proportions=None, sums=np.ones(6), task="binary"), "task='amount'"),
        (lambda: unbag.BagRidgeClassifier().fit_bags(amount_bags(task="amount")), "for labels"),
        (lambda: unbag.BagClassifier().fit(**good(), task="amount"), "for labels"),
        (lambda: unbag.estimate_risk(np.ones(60), amount_bags(task="amount")), "for labels"),
        (lambda: unbag.bag_posterior(np.ones(60), amount_bags(task="amount")), "for labels"),
        (lambda: unbag.evaluate(np.ones(5), amount_bags(task="amount")), "one per instance"),
        (lambda: unbag.evaluate(np.full(60, np.nan), amount_bags(task="amount")), "finite"),
        (lambda: BagRidgeRegressor().fit_bags(several_classes()), "learns one amount"),
        (lambda: fitted_ridge().score(**good(), sample_weight=np.ones(60)), "sample_weight"),
    ],
)
def test_amounts_where_labels_are_wanted_and_the_other_way_round(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def several_classes():
    shares = np.tile([0.5, 0.2, 0.3], (6, 1))
    return Bags.from_arrays(np.ones((60, 1)), bags=np.repeat(range(6), 10), proportions=shares)


def fitted_ridge():
    return BagRidgeRegressor().fit(**good())


@pytest.mark.parametrize(
    "call",
    [
        unbag.column_importance,
        unbag.cross_fit_risk,
        unbag.cross_fit_scores,
        unbag.bag_learning_curve,
        lambda model, *given, **bags: unbag.compare_models(model, model, *given, **bags),
    ],
)
def test_what_is_for_classifiers_names_the_way_for_regressors(call, rng):
    X, _, ids, averages = bagged(rng)
    with pytest.raises(BagDataError, match="classifier here, got BagRidgeRegressor"):
        call(BagRidgeRegressor().fit(X, averages[ids], bags=ids), X, averages[ids], bags=ids)
    target = BagTarget(ids, averages[ids])
    assert cross_val_score(BagRidgeRegressor(), X, target, cv=BagKFold(5)).mean() > 0.5


def test_few_bags_have_no_interval():
    two = Bags.from_arrays(np.zeros(4), bags=[0, 0, 1, 1], proportions=[1.0, 9.0], task="amount")
    found = evaluate_amounts(np.zeros(4), two)["mse"]
    assert not found.has_interval and "fewer than three" in found.note


def test_an_array_of_predictions_and_a_function_will_do(rng):
    X, _, ids, averages = bagged(rng)
    model = BagRidgeRegressor().fit(X, averages[ids], bags=ids)
    wanted = unbag.evaluate(model, X, averages[ids], bags=ids)
    for given in (model.predict(X), model.predict):
        found = unbag.evaluate(given, X, averages[ids], bags=ids, task="amount")
        assert found["mse"] == wanted["mse"]


def test_shares_can_be_taken_for_amounts(rng):
    X, _, ids, _ = bagged(rng)
    shares = np.repeat((X[:, 0] > 0).reshape(150, 10).mean(axis=1), 10)
    by_shares = BagRidgeRegressor().fit_bags(Bags.from_arrays(X, bags=ids, y=shares))
    assert by_shares.score(X, X[:, 0] > 0) > 0.4
    with pytest.raises(BagDataError, match="lost its bag ids"):
        by_shares.score(X, BagTarget(ids, shares) * 1)


def test_boosting_does_not_overshoot_where_rows_of_a_bag_are_alike(rng):
    x = np.repeat(rng.normal(size=40), 100)
    bags = Bags.from_arrays(
        x[:, None], offsets=np.arange(0, 4001, 100), proportions=x[::100], task="amount"
    )
    model = BagBoostingRegressor(cv=0, n_runs=1, n_estimators=100, random_state=0).fit_bags(bags)
    assert np.abs(model.predict(x[:, None])).max() < 2 * np.abs(x).max()
