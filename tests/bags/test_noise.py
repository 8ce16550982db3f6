"""Known noise in the proportions of bags: every way to state it, and what it makes acceptable."""

import numpy as np
import pytest

from unbag import Bags, BagTarget
from unbag.bags import as_bags
from unbag.bags.noise import check_noise_shows, rounding_grid
from unbag.errors import BagDataError, BagDataWarning

X = np.arange(12.0).reshape(6, 2)
IDS = ["s", "n", "s", "e", "n", "s"]  # s: rows 0, 2, 5; n: rows 1, 4; e: row 3
Y = [1 / 3, 0.5, 1 / 3, 1.0, 0.5, 1 / 3]


def test_noise_in_a_series_is_by_bag_or_by_instance():
    pandas = pytest.importorskip("pandas")
    by_bag = pandas.Series({"e": 0.0, "n": 0.2, "s": 0.1})
    by_instance = pandas.Series([by_bag[b] for b in IDS])
    some_rows = by_instance.set_axis([7, 3, 5, 8, 1, 0])
    for noise in (by_bag, by_instance, some_rows):
        bags = Bags.from_arrays(X, bags=IDS, y=Y, noise_variance=noise)
        np.testing.assert_allclose(bags.noise_variance, [0.1, 0.2, 0.0])
    single = {"bags": ["b", "c", "a"], "y": [1, 0, 1]}
    named = pandas.Series({"a": 0.1, "b": 0.2, "c": 0.3})
    bags = Bags.from_arrays(X[:3], **single, noise_variance=named)
    np.testing.assert_allclose(bags.noise_variance, [0.2, 0.3, 0.1])
    bags = Bags.from_arrays(X[:3], **single, noise_variance=pandas.Series([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(bags.noise_variance, [0.1, 0.2, 0.3])


def test_noise_variance_and_proportions_outside_the_unit_interval():
    noisy = {"s": -0.05, "n": 0.47, "e": 1.2}
    bags = Bags.from_arrays(X, bags=IDS, proportions=noisy, noise_variance=0.01)
    np.testing.assert_allclose(bags.noise_variance, 0.01)
    each = Bags.from_arrays(
        X, bags=IDS, proportions=noisy | {"e": 1.0}, noise_variance={"s": 0.1, "n": 0.2, "e": 0.0}
    )
    np.testing.assert_allclose(each.noise_variance, [0.1, 0.2, 0.0])
    per_row = [{"s": 0.1, "n": 0.2, "e": 0.0}[b] for b in IDS]
    like_y = Bags.from_arrays(X, bags=IDS, y=Y, noise_variance=per_row)
    np.testing.assert_allclose(like_y.noise_variance, each.noise_variance)


@pytest.mark.parametrize("zero", [0.0, np.zeros(len(IDS)), dict.fromkeys(IDS, 0)])
def test_noise_of_variance_zero_is_no_noise(zero):
    assert Bags.from_arrays(X, bags=IDS, y=Y, noise_variance=zero).noise_variance is None
    assert BagTarget(IDS, Y, noise_variance=zero).noise_variance is None
    with pytest.raises(BagDataError, match=r"must be in \[0, 1\].*percentages by 100"):
        Bags.from_arrays(X, bags=IDS, y=100 * np.array(Y), noise_variance=zero)


@pytest.mark.parametrize(
    ("proportions", "variance"),
    [
        ({"s": 0.0, "n": 50.0, "e": 100.0}, 0.01),
        ({"s": -1.5, "n": 0.5, "e": 1.0}, 0.01),
        ({"s": -0.05, "n": 0.47, "e": 1.2}, {"s": 0.1, "n": 0.2, "e": 0.0}),
    ],
    ids=["percentages", "below", "an exact bag"],
)
def test_what_noise_does_not_explain_is_refused(proportions, variance):
    with pytest.raises(BagDataError, match="up to the stated noise"):
        Bags.from_arrays(X, bags=IDS, proportions=proportions, noise_variance=variance)


def test_noise_that_goes_far_is_accepted(rng):
    """The worst of very many draws of the widest noise in use."""
    n_bags, deviation = 200_000, 0.2
    noisy = rng.integers(2, size=n_bags) + rng.laplace(size=n_bags) * deviation / 2**0.5
    offsets = np.arange(n_bags + 1)
    bags = Bags.from_arrays(
        np.zeros((n_bags, 1)), offsets=offsets, proportions=noisy, noise_variance=deviation**2
    )
    assert bags.proportions.max() > 1 + 5 * deviation


def test_noise_beside_counts_is_that_of_the_counts():
    noisy = {"s": -0.5, "n": 1.4, "e": 1.2}  # of 3, 2 and 1 instances
    bags = Bags.from_arrays(X, bags=IDS, counts=noisy, noise_variance=0.36)
    np.testing.assert_allclose(bags.proportions, [-0.5 / 3, 0.7, 1.2])
    np.testing.assert_allclose(bags.noise_variance, [0.04, 0.09, 0.36])
    with pytest.raises(BagDataError, match="pass `noise_variance` if noise was added"):
        Bags.from_arrays(X, bags=IDS, counts=noisy)


def laplace(rng, n_bags, *, size=20, n_draws=1):
    """Proportions that are nothing but noise of variance 1."""
    return rng.laplace(scale=0.5**0.5, size=(n_draws, n_bags)), np.full(n_bags, size)


@pytest.mark.parametrize("n_bags", [2, 5, 20, 200])
def test_noise_that_is_as_wide_as_stated_is_never_refused(rng, n_bags):
    draws, sizes = laplace(rng, n_bags, n_draws=2000)
    scale = np.exp(rng.normal(size=n_bags))
    for proportions in draws:
        check_noise_shows(scale * proportions, sizes, scale**2)


@pytest.mark.parametrize("n_bags", [40, 200])
def test_the_variance_of_counts_is_not_taken_for_that_of_proportions(rng, n_bags):
    """Once it gave an error of -731 %."""
    sizes = rng.integers(1, 80, n_bags)
    labels = rng.binomial(sizes, 0.4)
    proportions = (labels + rng.laplace(size=n_bags)) / sizes
    given = {"bags": np.repeat(np.arange(n_bags), sizes), "bag_ids": np.arange(n_bags)}
    X = np.zeros((sizes.sum(), 1))
    Bags.from_arrays(X, **given, proportions=proportions, noise_variance=2 / sizes**2)
    Bags.from_arrays(X, **given, counts=proportions * sizes, noise_variance=2.0)
    with pytest.raises(BagDataError, match="variance of the counts"):
        Bags.from_arrays(X, **given, proportions=proportions, noise_variance=2.0)


def test_noise_that_whole_numbers_hide_is_not_refused():
    nothing, sizes = np.zeros(200), np.full(200, 5)
    check_noise_shows(nothing, sizes, np.full(200, 1 / 12))  # rates rounded to 0 or 1
    check_noise_shows(nothing, sizes, np.full(200, 0.4))  # counts with noise of 3 labels
    with pytest.raises(BagDataError, match="noise_variance exceeds"):
        check_noise_shows(nothing, sizes, np.full(200, 4.0))


ROUNDED = np.round(np.random.default_rng(0).binomial(500, 0.3, 40) / 500, 2)


def test_rounding_is_stated_by_its_name():
    """The same variance, step**2 / 12, wherever a noise variance is taken."""
    ids = np.repeat(np.arange(40), 500)
    rows = np.zeros((len(ids), 1))
    made = [
        Bags.from_arrays(rows, bags=ids, proportions=ROUNDED, noise_variance="rounding"),
        Bags.from_arrays(rows, bags=ids, y=ROUNDED[ids], noise_variance="rounding"),
        as_bags(rows, BagTarget(ids, ROUNDED[ids], noise_variance="rounding")),
    ]
    for bags in made:
        np.testing.assert_allclose(bags.noise_variance, 0.01**2 / 12)


def test_a_grid_coarser_than_counts_is_warned_of():
    with pytest.warns(BagDataWarning, match=r"multiples of 0.01.*noise_variance='rounding'"):
        Bags.from_arrays(
            np.zeros((20_000, 1)), bags=np.repeat(np.arange(40), 500), proportions=ROUNDED
        )


@pytest.mark.parametrize(
    ("noise", "words"),
    [("rounding", "no multiples of a decimal step"), ("loud", "'rounding', got")],
)
def test_what_was_not_rounded_has_no_rounding_noise(noise, words):
    with pytest.raises(BagDataError, match=words):
        Bags.from_arrays(X, bags=IDS, y=Y, noise_variance=noise)


@pytest.mark.parametrize("size", [4, 10, 20, 100, 1000])
def test_whole_counts_are_not_taken_for_rounded(size):
    """The chance it states is an upper bound: how often 30 bags are all multiples by chance."""
    rng, n_draws = np.random.default_rng(size), 400
    sizes = np.full(30, size)
    chances = [rounding_grid(rng.binomial(sizes, 0.4) / sizes, sizes)[1] for _ in range(n_draws)]
    assert np.mean(np.array(chances) < 0.05) < 0.05


def test_a_share_that_is_no_count_is_told_its_ways_out():
    with pytest.warns(BagDataWarning, match=r"If noise was added, pass its variance as"):
        Bags.from_arrays(np.zeros((6, 1)), bags=[0, 0, 0, 1, 1, 1], proportions=[1 / 7, 1 / 3])
