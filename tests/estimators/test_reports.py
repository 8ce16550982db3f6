"""Several reports about the same rows, against generalised least squares done directly."""

import numpy as np
import pytest

from unbag import BagRidgeClassifier, BagRidgeRegressor, Bags
from unbag.errors import BagDataError
from unbag.estimators.closed_form import joint_statistics

N_ROWS = 240


def world(rng, *, labels=False):
    """Rows, their amounts or labels, and the row's bag in each of three reports."""
    X = rng.normal(size=(N_ROWS, 3))
    amounts = 2 * X[:, 0] - X[:, 1] + 5 + rng.normal(size=N_ROWS)
    reports = [
        np.repeat(np.arange(24), 10),
        rng.permutation(np.repeat(np.arange(12), 20)),
        rng.integers(0, 30, size=N_ROWS),
    ]
    return X, (amounts > 5).astype(float) if labels else amounts, reports


def report(X, y, ids, *, noise=None, task="amount"):
    averages = {bag: y[ids == bag].mean() for bag in np.unique(ids)}
    return Bags.from_arrays(X, bags=ids, proportions=averages, noise_variance=noise, task=task)


def direct(X, reports, *, variance=1.0):
    """Coefficients and intercept by the pseudo-inverse of the averages' covariance."""
    rows, values, noise = [], [], []
    for one in reports:
        for number in range(one.n_bags):
            row = np.zeros(len(X))
            row[one.rows_of(np.array([number]))] = 1 / one.sizes[number]
            rows.append(row)
            values.append(one.proportions[number])
            noise.append(0.0 if one.noise_variance is None else one.noise_variance[number])
    averaging = np.array(rows)
    precision = np.linalg.pinv(
        averaging @ averaging.T + np.diag(noise) / variance, rcond=1e-10, hermitian=True
    )
    design = averaging @ np.column_stack([X, np.ones(len(X))])
    return np.linalg.solve(design.T @ precision @ design, design.T @ precision @ values)


def solution(model):
    return [*model.coef_, model.intercept_]


def test_amounts_are_generalised_least_squares(rng):
    X, amounts, ids = world(rng)
    reports = [report(X, amounts, column) for column in ids]
    fitted = BagRidgeRegressor(penalties=[0.0]).fit_bags(reports)
    np.testing.assert_allclose(solution(fitted), direct(X, reports))
    stacked = Bags.from_arrays(  # as if bags of different reports had no row in common
        np.tile(X, (3, 1)),
        bags=np.concatenate([100 * i + column for i, column in enumerate(ids)]),
        y=np.concatenate([r.proportions[r.bag_of_row] for r in reports]),
        task="amount",
    )
    naive = BagRidgeRegressor(penalties=[0.0]).fit_bags(stacked)
    assert np.abs(naive.coef_ - fitted.coef_).max() > 1e-3


def test_shares_are_generalised_least_squares(rng):
    X, labels, ids = world(rng, labels=True)
    reports = [report(X, labels, column, task="binary") for column in ids]
    fitted = BagRidgeClassifier(penalties=[0.0]).fit_bags(reports)
    np.testing.assert_allclose(solution(fitted), direct(X, reports))
    assert fitted.score(X, labels.astype(int)) > 0.7


def test_classes_may_be_several(rng):
    X, amounts, ids = world(rng)
    classes = np.eye(3)[np.digitize(amounts, [4, 6])]
    reports = [
        Bags.from_arrays(X, bags=c, y=np.array([classes[c == b].mean(axis=0) for b in c]))
        for c in ids
    ]
    fitted = BagRidgeClassifier(penalties=[0.0]).fit_bags(reports)
    one = [report(X, classes[:, 2], column, task="binary") for column in ids]
    wanted = BagRidgeClassifier(penalties=[0.0]).fit_bags(one)
    np.testing.assert_allclose(fitted.coef_[:, 2], wanted.coef_)


def test_known_noise_joins_the_covariance(rng):
    X, labels, ids = world(rng, labels=True)
    noisy = [report(X, labels, c, noise=0.01, task="binary") for c in ids[:2]]
    noisy[1].proportions[:] += 0.1 * rng.normal(size=12)
    fitted = BagRidgeClassifier(penalties=[0.0]).fit_bags(noisy)
    np.testing.assert_allclose(solution(fitted), direct(X, noisy, variance=0.25))


def test_one_report_is_the_plain_fit(rng):
    X, amounts, ids = world(rng)
    for column in (ids[0], ids[2]):
        one = report(X, amounts, column)
        plain = BagRidgeRegressor(penalties=[0.3]).fit_bags(one)
        listed = BagRidgeRegressor(penalties=[0.3]).fit_bags([one])
        np.testing.assert_allclose(solution(listed), solution(plain))
    equal = BagRidgeRegressor().fit_bags([report(X, amounts, ids[0])])
    plain = BagRidgeRegressor().fit_bags(report(X, amounts, ids[0]))
    assert equal.leave_one_out_.min() == pytest.approx(plain.leave_one_out_.min(), rel=0.3)


def test_the_same_report_twice_tells_no_more(rng):
    X, amounts, ids = world(rng)
    one = report(X, amounts, ids[2])
    once, twice = (BagRidgeRegressor(penalties=[0.0]).fit_bags(r) for r in ([one], [one, one]))
    np.testing.assert_allclose(solution(twice), solution(once))


def test_reports_of_some_rows_only(rng):
    X, amounts, ids = world(rng)
    part = report(X, amounts, ids[1]).take(np.arange(5))
    reports = [report(X, amounts, ids[0]), part]
    fitted = BagRidgeRegressor(penalties=[0.0]).fit_bags(reports)
    np.testing.assert_allclose(solution(fitted), direct(X, reports))


def test_more_reports_tell_more(rng):
    """Two groupings of the same rows, and the error of the weights by one and by both."""
    errors = []
    for _ in range(60):
        X, amounts, ids = world(rng)
        both = [report(X, amounts, column) for column in ids[:2]]
        fits = [BagRidgeRegressor(penalties=[0.0]).fit_bags(r) for r in ([both[0]], both)]
        errors.append([np.sum((fit.coef_ - [2, -1, 0]) ** 2) for fit in fits])
    gain = np.subtract(*np.transpose(errors))
    assert gain.mean() > 3 * gain.std() / np.sqrt(60)


def test_what_comes_out_is_independent_and_of_one_size(rng):
    X, _, ids = world(rng)
    found = []
    for _ in range(400):
        noise = rng.normal(size=N_ROWS)
        reports = [report(X, noise, column) for column in ids[:2]]
        statistics = joint_statistics(reports)
        found.append(np.sqrt(statistics.sizes[0]) * statistics.proportions[:, 0])
    covariance = np.cov(np.array(found).T)
    # A variance of 400 draws has a standard error of 0.07; the largest of 35 x 35 entries.
    assert np.abs(covariance - np.eye(len(covariance))).max() < 0.35


MALFORMED = {
    "no report": (lambda X, a, ids: [], "sequence of some"),
    "arrays": (lambda X, a, ids: [ids[0], ids[1]], "must be a Bags"),
    "other rows": (
        lambda X, a, ids: [report(X, a, ids[0]), report(X + 1, a, ids[1])],
        "report 1 holds another X",
    ),
    "fewer rows": (
        lambda X, a, ids: [report(X, a, ids[0]), report(X[:99], a[:99], ids[1][:99])],
        "holds another X",
    ),
    "shares beside amounts": (
        lambda X, a, ids: [report(X, a, ids[0]), report(X, a > 5, ids[1], task="binary")],
        "report 1 is binary",
    ),
    "contradiction": (
        lambda X, a, ids: [report(X, a, ids[0]), report(X, a + 0.5, ids[1])],
        "contradict each other",
    ),
    "rounded averages": (
        lambda X, a, ids: [report(X, a, ids[0]), rounded(report(X, a, ids[1]))],
        "pass its variance as noise_variance",
    ),
    "equal averages": (
        lambda X, a, ids: [report(X, np.full(N_ROWS, 3.0), c) for c in ids],
        "nothing to learn from",
    ),
}


def rounded(bags):
    bags.proportions[:] = bags.proportions.round(1)
    return bags


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_reports_are_refused_in_words(case, rng):
    make, words = MALFORMED[case]
    with pytest.raises(BagDataError, match=words):
        BagRidgeRegressor().fit_bags(make(*world(rng)))
