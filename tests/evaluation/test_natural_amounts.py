"""Amounts in natural groups: what averages tell, and what they do not."""

import numpy as np
import pytest

import unbag

N_GROUPS = 60


def draw(rng, *, effect=0.5, between=1.0):
    """Predictions and amounts of groups that differ in features, and by more than these."""
    sizes = rng.integers(10, 60, N_GROUPS)
    ids = np.repeat(np.arange(N_GROUPS), sizes)
    x = rng.normal(size=len(ids)) + between * rng.normal(size=N_GROUPS)[ids]
    amounts = x + effect * rng.normal(size=N_GROUPS)[ids] + rng.normal(size=len(ids))
    return x, amounts, ids, (np.bincount(ids, amounts) / sizes)[ids]


def judged(x, y, ids, **options):
    return unbag.evaluate(x, None, y, bags=ids, task="amount", **{"grouping": "natural"} | options)


def test_metrics_equal_weighted_regressions_on_averages():
    x, amounts, ids, y = draw(np.random.default_rng(0))
    found = judged(x, y, ids)
    sizes = np.bincount(ids)
    means, averages = np.bincount(ids, x) / sizes, np.bincount(ids, amounts) / sizes
    square = np.average((means - averages) ** 2, weights=sizes)
    variance = np.cov(averages, fweights=sizes, ddof=0)
    assert np.isclose(found["group_mse"].value, square)
    assert np.isclose(found["group_r2"].value, 1 - square / variance)
    assert np.isclose(found["bias"].value, np.mean(x - amounts))
    assert np.isclose(found["slope"].value, np.polyfit(means, averages, 1, w=sizes**0.5)[0])
    assert square <= np.mean((x - amounts) ** 2) and "larger, and unknown" in found.headline


def test_what_is_stated_for_random_groups_would_mislead():
    """The squared error of single amounts would be several times too high, R2 too high as well."""
    x, amounts, ids, y = draw(np.random.default_rng(1))
    true = np.mean((x - amounts) ** 2)
    wrong = judged(x, y, ids, grouping="random")
    assert wrong["mse"].low > 2 * true and wrong["r2"].low > 1 - true / amounts.var()
    assert "mse" not in judged(x, y, ids).estimates


def test_known_noise_is_taken_off():
    rng, found = np.random.default_rng(2), []
    x, _, ids, y = draw(rng)
    for _ in range(200):
        noisy = y + rng.normal(size=N_GROUPS)[ids]
        own = judged(x, noisy, ids, noise_variance=1.0)
        found.append([own["group_mse"].value, own["group_r2"].value])
    exact = judged(x, y, ids)
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert abs(found[:, 0].mean() - exact["group_mse"].value) < 4 * error[0]


def test_intervals_cover_the_population_of_groups():
    rng = np.random.default_rng(3)
    held = []
    for _ in range(400):
        x, _, ids, y = draw(rng, between=0.5)
        found = judged(x, y, ids)
        sizes = np.arange(10, 60)
        square = 0.25 + 1 / sizes.mean()  # E[size (effect^2 + 1 / size)] / E[size]
        variance = 0.25 + 0.25 + 2 / sizes.mean()
        truths = {
            "group_mse": square,
            "group_r2": 1 - square / variance,
            "bias": 0.0,
            "slope": None,
        }
        held.append(
            [found[m].low <= t <= found[m].high for m, t in truths.items() if t is not None]
        )
    # Four standard errors of 400 draws are 4.4 points; the jackknife may cover more.
    assert (np.mean(held, axis=0) > 0.906).all()


@pytest.mark.parametrize(("between", "wanted"), [(0.0, "mse"), (1.0, "group_mse")])
def test_auto_tests_the_features(between, wanted):
    x, _, ids, y = draw(np.random.default_rng(4), effect=0.0, between=between)
    found = unbag.evaluate(
        lambda X: X[:, 0], x[:, None], y, bags=ids, task="amount", grouping="auto"
    )
    assert wanted in found.estimates and "groups" in found.grouping
    assert found.grouping in str(found).replace("\n", " ") or "Bags are" in str(found)
