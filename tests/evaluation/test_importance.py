"""Importance of columns from bags: unbiased, covered by its interval, the same for every frame."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

import unbag
from unbag.errors import BagDataError, TableError
from unbag.evaluation.importance import donor_rows, with_permuted
from unbag.evaluation.risk import decisions

N_BAGS, BAG_SIZE, N_DRAWS = 60, 20, 150


def chance(X):
    return expit(1.5 * X[:, 0] + X[:, 1] - 0.5)


def model(X):
    """A wrong model, which uses neither what the truth uses nor the last column."""
    return expit(2 * X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 2] - 0.3)


def draw(rng, n):
    X = rng.normal(size=(n, 4))
    X[:, 1] = 0.6 * X[:, 0] + 0.8 * X[:, 1]
    return X


def bagged(rng, X, n_bags):
    labels = (rng.random(len(X)) < chance(X)).astype(float)
    ids = np.repeat(np.arange(n_bags), len(X) // n_bags)
    return labels.reshape(n_bags, -1).mean(axis=1)[ids], ids


def rises(X, loss):
    """The truth, on many rows whose chances are known."""
    p, risks = chance(X), []
    for column in (None, 0, 1, 2, 3):
        Z = X.copy()
        if column is not None:
            Z[:, column] = np.roll(X[:, column], 1)
        f = model(Z)[:, None]
        f = (decisions(f, "binary") if loss == "zero_one" else f)[:, 0]
        risks.append(np.mean(f**2 - 2 * f * p + p))
    return np.subtract(risks[1:], risks[0])


@pytest.fixture(scope="module", params=["square", "zero_one"])
def simulated(request):
    rng, loss = np.random.default_rng(request.config.getoption("--seed")), request.param
    truth = rises(draw(rng, 400_000), loss)
    found = []
    for number in range(N_DRAWS):
        X = draw(rng, N_BAGS * BAG_SIZE)
        y, ids = bagged(rng, X, N_BAGS)
        made = unbag.column_importance(
            model, X, y, bags=ids, loss=loss, n_repeats=2, random_state=number
        )
        found.append([(made[f"x{c}"].value, made[f"x{c}"].standard_error) for c in range(4)])
    values, errors = np.moveaxis(found, -1, 0)
    return values - truth, errors


def bias_in_standard_errors(gaps):
    return np.abs(gaps.mean(axis=0)) / gaps.std(axis=0) * len(gaps) ** 0.5


@pytest.mark.statistical
def test_importance_is_unbiased(simulated):
    gaps, _ = simulated
    assert (bias_in_standard_errors(gaps[:, :3]) < 4).all()
    assert not gaps[:, 3].any()  # a column that the model does not use


@pytest.mark.statistical
def test_intervals_hold_the_truth(simulated):
    gaps, errors = simulated
    held = (np.abs(gaps) <= 2 * errors).mean(axis=0)
    # 95 % less three and a half standard errors of a share of 150.
    assert (held >= 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / N_DRAWS)).all()
    assert (np.abs(gaps[:, :3]) <= errors[:, :3] / 2).mean() < 0.7  # and the check can fail


@pytest.mark.statistical
def test_the_check_rejects_rates_taken_for_labels(rng):
    truth, gaps = rises(draw(rng, 400_000), "square"), []
    for _ in range(40):
        X = draw(rng, N_BAGS * BAG_SIZE)
        y, _ids = bagged(rng, X, N_BAGS)
        Z = X.copy()
        Z[:, 0] = rng.permutation(X[:, 0])
        gaps.append([np.mean((model(Z) - y) ** 2 - (model(X) - y) ** 2) - truth[0]])
    assert (bias_in_standard_errors(np.array(gaps)) > 4).all()


def test_natural_groups_lose_likelihood_and_have_no_interval(rng):
    X = draw(rng, 1200)
    X += np.repeat(rng.normal(size=(60, 4)), 20, axis=0)
    y, ids = bagged(rng, X, 60)
    found = unbag.column_importance(chance, X, y, bags=ids, grouping="natural")
    assert next(iter(found)) == "x0" and found["x0"].value > 0.1
    assert found["x3"].value == pytest.approx(0, abs=1e-12)
    assert not any(found[name].has_interval for name in found)
    again = unbag.column_importance(chance, X, y, bags=ids, grouping="auto")
    assert again.grouping.startswith("Bags are treated as natural groups")
    assert again.to_dict()["x0"]["value"] == found["x0"].value


def test_whole_columns_of_any_frame_are_permuted(rng):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    x, colour = rng.normal(size=800), rng.choice(["red", "green", "blue"], size=800)
    labels = ((colour == "red") | (x > 1)).astype(float)
    ids = np.repeat(np.arange(80), 10)
    y = labels.reshape(80, 10).mean(axis=1)[ids]
    frame = pd.DataFrame({"x": x, "colour": pd.Categorical(colour)}, index=np.arange(800)[::-1])
    clf = unbag.BagRidgeClassifier().fit(frame, y, bags=ids)
    found = unbag.column_importance(clf, frame, y, bags=ids, n_repeats=2)
    assert list(found) == ["colour", "x"] and found["colour"].low > 0.05
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        same = unbag.column_importance(clf, other, y, bags=ids, n_repeats=2)
        assert same["colour"].value == pytest.approx(found["colour"].value)
    together = unbag.column_importance(
        clf, frame, y, bags=ids, columns={"all": ["x", "colour"]}, n_repeats=2
    )
    assert together["all"].value > found["x"].value
    assert "<svg" in found.plot()._repr_html_() and "colour" in str(found)
    assert "colour" in found._repr_html_()
    with pytest.raises(TableError, match="no column 'color'"):
        unbag.column_importance(clf, frame, y, bags=ids, columns=["color"])


def test_a_permutation_moves_every_row_of_the_bags_and_no_other(rng):
    data = unbag.Bags.from_arrays(np.arange(12.0)[:, None], offsets=[0, 4, 8, 12], counts=[1, 2, 3])
    donors = donor_rows(data.take([0, 2]), 12, seed=1, repeat=0)
    moved = np.r_[0:4, 8:12]
    assert sorted(donors[moved]) == moved.tolist() and (donors[moved] != moved).all()
    assert (donors[4:8] == np.arange(4, 8)).all()
    assert (with_permuted(data.X, [0], donors)[:, 0] == donors).all()


def test_several_classes_and_what_cannot_be_permuted(rng):
    X = rng.normal(size=(900, 3))
    labels = np.eye(3)[X[:, :3].argmax(axis=1)]
    ids = np.repeat(np.arange(90), 10)
    y = labels.reshape(90, 10, 3).mean(axis=1)[ids]
    clf = unbag.BagRidgeClassifier().fit(X, y, bags=ids)
    found = unbag.column_importance(clf, X, y, bags=ids, loss="zero_one")
    assert all(found[name].low > 0 for name in found)
    natural = unbag.column_importance(clf, X, y, bags=ids, grouping="natural")
    assert all(natural[name].value > 0 for name in natural)
    with pytest.raises(BagDataError, match="predict_proba"):
        unbag.column_importance(clf.predict_proba(X), X, y, bags=ids)
    with pytest.raises(BagDataError, match="numbers below 3"):
        unbag.column_importance(clf, X, y, bags=ids, columns=[3])
