"""The closed form against its definition: brute-force refits, optimality, streaming."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbag import BagRidgeClassifier, Bags
from unbag.errors import BagDataError
from unbag.estimators.closed_form import BagStatistics, RidgeSolution, project_to_simplex


def random_bags(rng, n_bags=12, n_features=4):
    sizes = rng.integers(1, 9, size=n_bags)
    bags = np.repeat(np.arange(n_bags), sizes)
    X = rng.normal(size=(len(bags), n_features)) + rng.normal(size=(n_bags, n_features))[bags]
    labels = X[:, 0] > 0
    y = np.array([labels[bags == b].mean() for b in range(n_bags)])[bags]
    return X, y, bags


def weighted_ridge(means, proportions, weights, penalty):
    """Solve the normal equations with an explicit intercept column."""
    design = np.column_stack([means, np.ones(len(means))])
    matrix = design.T @ (weights[:, None] * design)
    matrix[:-1, :-1] += penalty * np.eye(means.shape[1])
    solution = np.linalg.solve(matrix, design.T @ (weights * proportions))
    return solution[:-1], solution[-1]


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("n_features", [4, 30], ids=["tall", "wide"])
def test_leave_one_out_equals_refitting(rng, n_features, standardise):
    X, y, bags = random_bags(rng, n_features=n_features)
    stats = BagRidgeClassifier(penalties=[0.1]).fit(X, y, bags=bags)._statistics
    solver = RidgeSolution(stats, standardise=standardise)
    means = stats.means / solver.scale
    penalty = 0.1 * solver.unit * stats.sizes.sum()
    errors = []
    for i in range(len(stats.sizes)):
        kept = np.arange(len(stats.sizes)) != i
        w, b = weighted_ridge(means[kept], stats.proportions[kept, 0], stats.sizes[kept], penalty)
        errors.append(stats.sizes[i] * (means[i] @ w + b - stats.proportions[i, 0]) ** 2)
    assert solver.leave_one_out(0.1) == pytest.approx(np.mean(errors))


def test_the_refit_check_notices_the_intercept(rng):
    """Leverage without the intercept's share is not the leave-one-out error."""
    X, y, bags = random_bags(rng)
    solver = RidgeSolution(BagRidgeClassifier().fit(X, y, bags=bags)._statistics)
    right = solver.leave_one_out(0.1)
    share, solver.share = solver.share, solver.share * (1 + 1e-3)
    assert solver.leave_one_out(0.1) != pytest.approx(right)
    solver.share = share


def test_it_minimises_the_debiased_loss(rng):
    """Without a penalty no small change of the weights lowers the pairwise debiased loss."""
    X, y, bags = random_bags(rng, n_bags=40)
    clf = BagRidgeClassifier(penalties=[0.0]).fit(X, y, bags=bags)
    stats = clf._statistics
    total = stats.sizes.sum()

    def debiased(coef, intercept):
        r = stats.means @ coef + intercept - stats.proportions[:, 0]
        mean = np.average(r, weights=stats.sizes)
        variance = (stats.sizes * (r - mean) ** 2).sum() / (len(r) - 1)
        return mean**2 + (1 - 1 / total) * variance

    best = debiased(clf.coef_, clf.intercept_)
    for _ in range(50):
        step = 1e-3 * rng.normal(size=5)
        assert debiased(clf.coef_ + step[:4], clf.intercept_ + step[4]) > best


def test_bags_of_one_are_ordinary_ridge(rng):
    X = rng.normal(size=(50, 3))
    labels = (X[:, 0] > 0).astype(int)
    clf = BagRidgeClassifier(penalties=[0.5]).fit(X, labels)
    unit = RidgeSolution(clf._statistics).unit
    w, b = weighted_ridge(X, labels.astype(float), np.ones(50), 0.5 * unit * 50)
    np.testing.assert_allclose(clf.coef_, w)
    assert clf.intercept_ == pytest.approx(b)


def test_noisy_bags_weigh_less():
    exact = BagStatistics(np.zeros((2, 1)), np.zeros((2, 1)), np.array([10.0, 10.0]), np.zeros(2))
    assert exact.weights[0] == 10
    noisy = BagStatistics(exact.means, exact.proportions, exact.sizes, np.array([0.0, 0.1]))
    assert noisy.weights[1] == pytest.approx(1 / (1 / 10 + 4 * 0.1))


def noisy_bags(rng, n_bags, bag_size, n_features, noise_variance):
    X = rng.normal(size=(n_bags * bag_size, n_features))
    labels = X[:, :3].sum(axis=1) > 0
    noise = np.sqrt(noise_variance) * rng.normal(size=n_bags)
    proportions = labels.reshape(n_bags, bag_size).mean(axis=1) + noise
    return X, labels, X.reshape(n_bags, bag_size, n_features).mean(axis=1), proportions


@pytest.mark.parametrize("share_noisy", [1.0, 0.5])
def test_leave_one_out_of_noisy_bags_estimates_the_square_loss(rng, share_noisy):
    n_bags, bag_size = 4000, 25
    noise_variance = np.where(np.arange(n_bags) < share_noisy * n_bags, 0.01, 0.0)
    X, labels, means, proportions = noisy_bags(rng, n_bags, bag_size, 4, noise_variance)
    clf = BagRidgeClassifier(penalties=[0.1]).fit_means(
        means, proportions, np.full(n_bags, bag_size), noise_variance=noise_variance
    )
    loss = np.mean((X @ clf.coef_ + clf.intercept_ - labels) ** 2)
    # A bag's estimate has a deviation of sqrt(2) (loss + size * noise), 0.5 here; without the
    # noise subtracted the mean is off by at least 0.125.
    assert clf.leave_one_out_[0] == pytest.approx(loss, abs=4 * 0.5 / n_bags**0.5)


def test_noisy_bags_do_not_choose_the_penalty(rng):
    """Bags that hardly count in the fit hardly count in the choice between fits."""
    n_bags, bag_size = 200, 20
    noise_variance = np.where(np.arange(n_bags) < n_bags / 2, 0.0, 100.0)
    _, _, means, proportions = noisy_bags(rng, n_bags, bag_size, 60, noise_variance)
    sizes = np.full(n_bags, bag_size)
    both = BagRidgeClassifier().fit_means(means, proportions, sizes, noise_variance=noise_variance)
    exact = slice(0, n_bags // 2)
    alone = BagRidgeClassifier().fit_means(means[exact], proportions[exact], sizes[exact])
    assert np.abs(np.log10(both.penalty_ / alone.penalty_)) < 0.5


def test_identical_bag_means_leave_the_intercept():
    X = np.ones((6, 2))
    clf = BagRidgeClassifier().fit(X, [0.5, 0.5, 1, 1, 1, 0], bags=[0, 0, 1, 1, 2, 3])
    np.testing.assert_array_equal(clf.coef_, 0)
    assert clf.intercept_ == pytest.approx(4 / 6)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_simplex_projection(seed, n_classes):
    scores = np.random.default_rng(seed).normal(size=(5, n_classes))
    projected = project_to_simplex(scores)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1)
    assert (projected.argmax(axis=1) == scores.argmax(axis=1)).all()


def test_bad_penalties_are_refused(rng):
    X, y, bags = random_bags(rng)
    for penalties in ([], [-1.0], [np.nan]):
        with pytest.raises(ValueError, match="penalties"):
            BagRidgeClassifier(penalties=penalties).fit(X, y, bags=bags)


def error_of_three_columns(column):
    """Error, on its own rows, of a fit to two telling columns and two that say nothing."""
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(4000, 3)), np.repeat(np.arange(200), 20)
    labels = X[:, 0] + X[:, 1] > 0
    y = labels.reshape(200, 20).mean(axis=1)[ids]
    X = np.column_stack([X, column * rng.normal(size=4000)])
    return (BagRidgeClassifier().fit(X, y, bags=ids).predict(X) != labels).mean()


def test_a_column_in_other_units_changes_nothing():
    """Without standardising, the column of deviation 1e4 drowned the others: an error of 22 %."""
    alike, apart = error_of_three_columns(1.0), error_of_three_columns(1e4)
    assert alike < 0.04
    assert apart < alike + 0.01


def test_standardised_solutions_follow_the_units(rng):
    means, proportions = rng.normal(size=(30, 4)), rng.random((30, 1))
    units = np.array([1, 1e3, 1e-3, 1])
    found = [
        RidgeSolution(
            BagStatistics(means * scale, proportions, np.full(30, 9.0), np.zeros(30)),
            standardise=True,
        )
        for scale in (1.0, units)
    ]
    (weights, intercept), (other, same) = (solution.coefficients(0.3) for solution in found)
    np.testing.assert_allclose(other * units[:, None], weights, rtol=1e-9)
    np.testing.assert_allclose(same, intercept, rtol=1e-9)
    assert found[0].leave_one_out(0.3) == pytest.approx(found[1].leave_one_out(0.3), rel=1e-9)


def test_numbers_whose_squares_overflow_are_refused(rng):
    X, y, bags = random_bags(rng)
    X[:, 2] *= 1e200
    with pytest.raises(BagDataError, match=r"column 2 reaches .*Rescale it"):
        BagRidgeClassifier().fit(X, y, bags=bags)


def many_features(rng, n_features=60, n_bags=30, bag_size=10):
    """Three classes in two of many directions; the other features vary less, and say nothing."""
    labels = rng.integers(3, size=n_bags * bag_size)
    mixing = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    hidden = rng.normal(size=(len(labels), n_features))
    hidden[:, :2] += 4 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    bags = np.repeat(np.arange(n_bags), bag_size)
    shares = np.eye(3)[labels].reshape(n_bags, bag_size, 3).mean(axis=1)
    return hidden @ mixing, labels, shares[bags], bags


def test_few_components_are_found_without_labels_and_are_better(rng, tmp_path):
    X, labels, y, bags = many_features(rng)
    plain = BagRidgeClassifier().fit(X, y, bags=bags)
    chosen = BagRidgeClassifier(n_components="auto").fit(X, y, bags=bags)
    assert chosen.n_components_ < 20
    assert chosen.leave_one_out_.min() < plain.leave_one_out_.min()
    errors = [(model.predict(X) != labels).mean() for model in (plain, chosen)]
    assert errors[1] < 0.6 * errors[0]
    again = BagRidgeClassifier.load(chosen.save(tmp_path / "m"))
    assert again.n_components_ == chosen.n_components_
    assert chosen.set_params(n_components=None).fit(X, y, bags=bags).n_components_ is None


def test_all_components_are_the_features_themselves(rng):
    X, _, y, bags = many_features(rng, n_features=6)
    plain = BagRidgeClassifier(standardise=False).fit(X, y, bags=bags)
    rotated = BagRidgeClassifier(standardise=False, n_components=99).fit(X, y, bags=bags)
    np.testing.assert_allclose(rotated.coef_, plain.coef_, atol=1e-10)
    np.testing.assert_allclose(rotated.intercept_, plain.intercept_)


@pytest.mark.parametrize("n_components", [0, -3, "many"])
def test_bad_numbers_of_components_are_refused(rng, n_components):
    X, _, y, bags = many_features(rng, n_bags=4)
    with pytest.raises(ValueError, match="n_components must be"):
        BagRidgeClassifier(n_components=n_components).fit(X, y, bags=bags)


def test_components_need_instances(rng):
    X, _, y, bags = many_features(rng, n_bags=4)
    with pytest.raises(ValueError, match="n_components must be None for several reports"):
        BagRidgeClassifier(n_components=2).fit_bags([Bags.from_arrays(X, y=y, bags=bags)])


def test_chance_does_not_standardise(rng):
    """Rare categories, boosted by standardising, are left alone where few bags cannot tell."""
    rare = rng.random((4000, 40)) < 0.02
    X = np.column_stack([rng.normal(size=(4000, 2)), rare])
    labels, ids = X[:, 0] > 0, np.repeat(np.arange(20), 200)
    y = labels.reshape(20, 200).mean(axis=1)[ids]
    found = BagRidgeClassifier().fit(X, y, bags=ids)
    np.testing.assert_array_equal(
        found.coef_, BagRidgeClassifier(standardise=False).fit(X, y, bags=ids).coef_
    )


@pytest.mark.parametrize("constant", [1.7e9 + 0.1, 1.7e12 + 0.1, 0.7])
@pytest.mark.parametrize("standardise", [True, False, None])
def test_a_constant_column_has_no_weight(rng, constant, standardise):
    """Its bag means differ by rounding, which a fit without a penalty would explain labels by."""
    X, y, bags = random_bags(rng, n_bags=40)
    X = np.column_stack([X, np.full(len(X), constant)])
    clf = BagRidgeClassifier(penalties=[1e-6], standardise=standardise).fit(X, y, bags=bags)
    assert clf.coef_[-1] == 0
    assert np.abs(clf.coef_[:-1]).max() > 0


def test_the_scale_is_not_chosen_against_the_estimated_error():
    """Noise makes estimated errors negative, and a margin in per cent of them would reverse."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sizes = np.full(12, 5.0)
        noisy = BagStatistics(
            rng.normal(size=(12, 3)), rng.random((12, 1)), sizes, np.full(12, 0.3)
        )
        clf = BagRidgeClassifier()
        chosen, *_ = clf._best(noisy)
        plain = RidgeSolution(noisy, standardise=False)
        grid = np.logspace(-6, 4, 60)
        assert chosen.min() <= min(plain.leave_one_out(p) for p in grid) + 1e-12


def test_several_labels_without_bags_are_refused(rng):
    X = rng.normal(size=(30, 3))
    with pytest.raises(BagDataError, match="one label per instance without bags"):
        BagRidgeClassifier().fit(X, (X > 0).astype(int))
    one_each = BagRidgeClassifier().fit(
        X, (X > 0).astype(float), bags=np.arange(30), task="multilabel"
    )
    assert one_each.task_ == "multilabel"
