"""A target that remembers its bags through whatever scikit-learn does to it."""

import copy
import pickle

import numpy as np
import pytest

from unbag import BagKFold, BagRidgeClassifier, BagTarget
from unbag.bags import bags_of, variance_of
from unbag.errors import BagDataError, SplitBagsWarning


@pytest.fixture
def target():
    return BagTarget(["a", "b", "a", "c"], {"a": 0.5, "b": 1.0, "c": 0.0})


@pytest.mark.parametrize("key", [[0, 2], np.array([True, False, True, False]), slice(0, 3, 2)])
def test_ids_follow_indexing(target, key):
    assert target[key].bags.tolist() == ["a", "a"]
    assert target[key, ...].bags.tolist() == ["a", "a"]


def test_ids_follow_copies(target):
    for twin in (target.copy(), copy.copy(target), copy.deepcopy(target)):
        assert twin.bags.tolist() == ["a", "b", "a", "c"]


@pytest.mark.parametrize(
    "ids", [[1, "1", 1, "1", "2"], [(0, "a"), (1, "a"), (0, "a"), (1, "a"), (2, "a")]]
)
def test_ids_of_any_kind_stay_apart(ids, rng):
    y = BagTarget(ids, [0.5, 1, 0.5, 1, 0])
    assert y.bags.tolist() == ids
    X = rng.normal(size=(5, 2))
    clf = BagRidgeClassifier().fit(X, y)
    np.testing.assert_array_equal(clf.coef_, BagRidgeClassifier().fit(X, y, bags=ids).coef_)
    parts = [test.tolist() for _, test in BagKFold(3).split(X, y)]
    assert sorted(parts) == [[0, 2], [1, 3], [4]]


def test_a_series_goes_by_its_index():
    pandas = pytest.importorskip("pandas")
    by_bag = pandas.Series({"a": 0.0, "m": 0.5, "z": 1.0})
    ids = ["z", "a", "z", "m"]
    assert BagTarget(ids, by_bag).tolist() == [1.0, 0.0, 1.0, 0.5]
    by_instance = pandas.Series([1.0, 0.0, 1.0, 0.5], index=[3, 2, 1, 0])
    assert BagTarget(ids, by_instance).tolist() == [1.0, 0.0, 1.0, 0.5]
    columns = BagTarget(ids, pandas.DataFrame({"yes": by_bag, "no": 1 - by_bag}))
    assert columns[:, 0].tolist() == [1.0, 0.0, 1.0, 0.5]


def test_arithmetic_loses_them(target):
    with pytest.raises(BagDataError, match="lost its bag ids"):
        bags_of(target + 0, None)


def test_part_of_a_bag_warns(target):
    with pytest.warns(SplitBagsWarning):
        bags_of(target[[0, 1]], None)


def test_whole_bags_do_not_warn(target):
    assert bags_of(target[[0, 2, 3]], None).tolist() == ["a", "a", "c"]


def test_folds_keep_bags_whole():
    bags = np.repeat(np.arange(10), 3)
    target = BagTarget(bags, np.repeat(np.linspace(0, 1, 4)[np.arange(10) % 4], 3))
    seen = []
    for train, test in BagKFold(5).split(np.zeros(30), target):
        assert not set(bags[train]) & set(bags[test])
        seen.extend(test)
    assert sorted(seen) == list(range(30))


def test_folds_need_bags():
    with pytest.raises(BagDataError, match="needs the bags"):
        list(BagKFold(2).split(np.zeros(4), np.zeros(4)))


@pytest.fixture
def noisy():
    variances = {"a": 0.1, "b": 0.2, "c": 0.0}
    return BagTarget(["a", "b", "a", "c"], [0.5, 1.2, 0.5, 0.0], noise_variance=variances)


def test_noise_follows_indexing_copies_and_pickles(noisy):
    wanted = [0.1, 0.2, 0.1, 0.0]
    for twin in (noisy, noisy.copy(), copy.deepcopy(noisy), pickle.loads(pickle.dumps(noisy))):  # noqa: S301
        assert variance_of(twin, None).tolist() == wanted
    assert variance_of(noisy[[0, 2]], None).tolist() == [0.1, 0.1]
    assert variance_of(noisy[[0, 2]], 0.3) == 0.3
    assert variance_of(noisy + 0, None) is None
    columns = BagTarget(noisy.bags, np.ones((4, 2)), noise_variance=wanted)
    assert columns[1:, 0].noise_variance.tolist() == [0.2, 0.1, 0.0]


def test_noise_is_a_number_a_mapping_or_one_value_an_instance(target):
    ids, values = target.bags, np.asarray(target)
    assert BagTarget(ids, values, noise_variance=0.1).noise_variance.tolist() == [0.1] * 4
    assert target.noise_variance is None
    with pytest.raises(BagDataError, match="bag 'c' is missing"):
        BagTarget(ids, values, noise_variance={"a": 0.1, "b": 0.2})
    with pytest.raises(BagDataError, match="one value per instance"):
        BagTarget(ids, values, noise_variance=[0.1, 0.2, 0.3])
    with pytest.raises(BagDataError, match="not negative"):
        BagTarget(ids, values, noise_variance=-1.0)


def test_bad_targets_are_refused():
    with pytest.raises(BagDataError, match="bag 'b' has none"):
        BagTarget(["a", "b"], {"a": 0.5})
    with pytest.raises(BagDataError, match="wanted 2, got 3"):
        BagTarget(["a", "b"], [0.5, 0.5, 0.5])


def test_more_folds_than_bags_are_refused(target):
    n_bags = len(set(target.bags.tolist()))
    with pytest.raises(BagDataError, match=rf"n_splits must be at most .*, {n_bags}, got 99"):
        next(BagKFold(99).split(np.zeros(len(target)), target))
