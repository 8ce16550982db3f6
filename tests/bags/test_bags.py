"""Bags from arrays: every shape of input, and every kind of bad input with its message."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from unbag import Bags, make_bags, split_bags
from unbag.bags import cut_batches
from unbag.errors import BagDataError, BagDataWarning

X = np.arange(12.0).reshape(6, 2)
IDS = ["s", "n", "s", "e", "n", "s"]  # s: rows 0, 2, 5; n: rows 1, 4; e: row 3
Y = [1 / 3, 0.5, 1 / 3, 1.0, 0.5, 1 / 3]


def assert_same(a, b):
    assert a.ids == b.ids
    np.testing.assert_array_equal(a.rows, b.rows)
    np.testing.assert_array_equal(a.sizes, b.sizes)
    np.testing.assert_allclose(a.proportions, b.proportions)


def test_three_ways_to_say_the_same():
    by_instance = Bags.from_arrays(X, bags=IDS, y=Y)
    assert by_instance.ids == ["s", "n", "e"]
    np.testing.assert_array_equal(by_instance.rows, [0, 2, 5, 1, 4, 3])
    np.testing.assert_array_equal(by_instance.sizes, [3, 2, 1])
    table = {"e": 1.0, "n": 0.5, "s": 1 / 3}
    assert_same(Bags.from_arrays(X, bags=IDS, proportions=table), by_instance)
    counts = {"e": 1, "n": 1, "s": 1}
    assert_same(Bags.from_arrays(X, bags=IDS, counts=counts), by_instance)
    columns = Bags.from_arrays(X, bags=IDS, counts=[1, 1, 1], bag_ids=["e", "n", "s"])
    assert_same(columns, by_instance)


def test_offsets():
    bags = Bags.from_arrays(X, offsets=[0, 2, 3, 6], counts=[1, 0, 2])
    np.testing.assert_array_equal(bags.rows, range(6))
    np.testing.assert_allclose(bags.proportions, [0.5, 0, 2 / 3])


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 3, 2, 1, 3],
        [(0, "a"), (1, "b"), (0, "a"), (2, "c"), (1, "b"), (0, "a")],
        np.array(["2024", "2022", "2024", "2023", "2022", "2024"], "datetime64[Y]"),
        [2.5, 1.5, 2.5, 0.5, 1.5, 2.5],
        [1, "one", 1, None.__class__, "one", 1],
    ],
    ids=["integers", "tuples", "dates", "floats", "mixed"],
)  # fmt: skip
def test_any_hashable_id(ids):
    bags = Bags.from_arrays(X, bags=ids, y=Y)
    np.testing.assert_array_equal(bags.sizes, [3, 2, 1])
    np.testing.assert_array_equal(bags.rows, [0, 2, 5, 1, 4, 3])


def test_data_frames_and_tensors():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    wanted = Bags.from_arrays(X, bags=IDS, y=Y)
    assert_same(Bags.from_arrays(pandas.DataFrame(X), bags=pandas.Series(IDS), y=Y), wanted)
    assert_same(Bags.from_arrays(X, bags=polars.Series(IDS), y=polars.Series(Y)), wanted)
    assert_same(Bags.from_arrays(torch.tensor(X), bags=IDS, y=Y), wanted)
    numbers = [IDS.index(name) for name in IDS]
    assert_same(
        Bags.from_arrays(X, bags=torch.tensor(numbers), y=Y), Bags.from_arrays(X, bags=numbers, y=Y)
    )


def test_a_million_bags_are_one_line():
    assert repr(Bags.from_arrays(X, bags=IDS, y=Y)) == "Bags(3 bags, 6 instances, binary)"


def test_pandas_objects_go_by_their_index():
    pandas = pytest.importorskip("pandas")
    by_name = pandas.Series({"e": 1.0, "n": 0.5, "s": 1 / 3})
    wanted = Bags.from_arrays(X, bags=IDS, y=Y)
    assert_same(Bags.from_arrays(X, bags=IDS, proportions=by_name), wanted)
    counts = pandas.Series(1, index=["e", "n", "s"])
    assert_same(Bags.from_arrays(X, bags=IDS, counts=counts), wanted)
    in_order = by_name.reset_index(drop=True)
    beside = Bags.from_arrays(X, bags=IDS, proportions=in_order, bag_ids=["e", "n", "s"])
    assert_same(beside, wanted)
    frame = pandas.DataFrame({"yes": by_name, "no": 1 - by_name})
    classes = Bags.from_arrays(X, bags=IDS, proportions=frame)
    np.testing.assert_allclose(classes.proportions[:, 0], wanted.proportions)
    with pytest.raises(BagDataError, match=r"bag 's' is missing.*matched by its index"):
        Bags.from_arrays(X, bags=IDS, proportions=in_order)
    twice = pandas.Series([1.0, 0.5, 0.5], index=["e", "n", "n"])
    with pytest.raises(BagDataError, match="bag 'n' occurs twice"):
        Bags.from_arrays(X, bags=IDS, proportions=twice)


def test_instances_are_not_copied():
    assert Bags.from_arrays(X, bags=IDS, y=Y).X is X


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=30).filter(lambda ids: len(set(ids)) > 1),
    st.randoms(use_true_random=False),
)
def test_order_of_rows_does_not_matter(ids, random):
    table = dict.fromkeys(ids, 0.0)
    X = np.arange(len(ids), dtype=float)[:, None]
    order = random.sample(range(len(ids)), len(ids))
    straight = Bags.from_arrays(X, bags=ids, proportions=table)
    shuffled = Bags.from_arrays(X[order], bags=[ids[i] for i in order], proportions=table)
    members = [
        {b.ids[i]: sorted(b.X[b.rows_of(np.array([i]))].ravel()) for i in range(b.n_bags)}
        for b in (straight, shuffled)
    ]
    assert members[0] == members[1]


def test_take_and_mean():
    bags = Bags.from_arrays(X, bags=IDS, y=Y)
    np.testing.assert_allclose(bags.mean(X), [X[[0, 2, 5]].mean(0), X[[1, 4]].mean(0), X[3]])
    some = bags.take(np.array([2, 0]))
    assert some.ids == ["e", "s"]
    np.testing.assert_allclose(some.mean(X), [X[3], X[[0, 2, 5]].mean(0)])


def test_tasks_are_read_off_the_proportions():
    classes = {"s": [1 / 3, 2 / 3, 0], "n": [0.5, 0, 0.5], "e": [1, 0, 0]}
    assert Bags.from_arrays(X, bags=IDS, proportions=classes).task == "multiclass"
    labels = {"s": [1 / 3, 1 / 3], "n": [0.5, 1], "e": [1, 0]}
    bags = Bags.from_arrays(X, bags=IDS, proportions=labels)
    assert (bags.task, bags.n_outputs) == ("multilabel", 2)


BAD = {
    "outside": ({"proportions": {"s": 40.0, "n": 0.5, "e": 1}}, r"bag 's' has 40.0.*percentages"),
    "negative": ({"proportions": {"s": 0.0, "n": -0.5, "e": 1}}, r"bag 'n' has -0.5"),
    "nan": ({"proportions": {"s": np.nan, "n": 0.5, "e": 1}}, r"finite, but bag 's'"),
    "y nan": ({"y": [np.nan, 0.5, 1 / 3, 1, 0.5, 1 / 3]}, r"y must be finite.*bag 's'"),
    "y inf": ({"y": [1 / 3, 0.5, 1 / 3, np.inf, 0.5, 1 / 3]}, r"y must be finite.*bag 'e'"),
    "differs": ({"y": [1 / 3, 0.5, 2 / 3, 1, 0.5, 1 / 3]}, r"bag 's' has values from 0.33"),
    "missing": ({"proportions": {"s": 0.0, "e": 1}}, r"bag 'n' is missing"),
    "empty bag": ({"counts": {"s": 0, "n": 1, "e": 1, "w": 0}}, r"bag 'w', which has no inst"),
    "counts": ({"counts": {"s": 4, "n": 1, "e": 1}}, r"bag 's' of 3 instances has 4"),
    "y length": ({"y": [0.5]}, r"y must have one value per instance, wanted 6, got 1"),
    "length": ({"proportions": [0.5, 1.0]}, r"one value per bag, wanted 3, got 2"),
    "twice": ({"counts": [1, 1, 1], "bag_ids": ["s", "s", "n"]}, r"'s' occurs twice"),
    "id length": ({"counts": [1, 1], "bag_ids": ["s", "e", "n"]}, r"same length, got 3 and 2"),
    "none": ({}, r"exactly one of"),
    "both": ({"y": Y, "counts": [1, 1, 1]}, r"exactly one of"),
    "noise": ({"y": Y, "noise_variance": -1.0}, r"noise_variance.*bag 's' has -1"),
    "noise per bag": (
        {"y": Y, "noise_variance": [0.1, 0.2, 0.0]},
        r"noise_variance must have one value per instance.*wanted 6",
    ),
    "noise in a bag": (
        {"y": Y, "noise_variance": np.arange(len(IDS))},
        r"noise_variance must repeat one value.*bag",
    ),
    "words": ({"y": ["yes", "no", "yes", "no", "no", "yes"]}, r"y must hold numbers.*'yes'"),
    "words by bag": ({"proportions": {"s": "a", "n": "b", "e": "a"}}, r"proportions must hold num"),
    "noise in words": ({"y": Y, "noise_variance": "low"}, r"noise_variance must hold numbers"),
    "noise nan": ({"y": Y, "noise_variance": {"s": 0, "n": np.nan, "e": 0}}, r"bag 'n' has nan"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_values_are_refused(name):
    arguments, message = BAD[name]
    with pytest.raises(BagDataError, match=message):
        Bags.from_arrays(X, bags=IDS, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": X, "bags": IDS[:5], "y": Y}, r"one id per instance, wanted 6, got 5"),
        ({"X": X, "bags": [*IDS[:5], None], "y": Y}, r"row 5 has none"),
        ({"X": X, "bags": [1, 2, 1, np.nan, 2, 1], "y": Y}, r"row 3 has none"),
        ({"X": X, "bags": np.ones((6, 2)), "y": Y}, r"shape \(6, 2\)"),
        ({"X": X, "bags": ["a"] * 6, "y": [0.5] * 6}, r"at least two bags"),
        ({"X": [["a"], ["b"]], "bags": [0, 1], "y": [0, 1]}, r"must hold numbers"),
        ({"X": X, "y": Y}, r"either `bags`"),
        ({"X": X, "bags": IDS, "offsets": [0, 6], "y": Y}, r"either `bags`"),
        ({"X": X, "offsets": [0, 3, 3, 6], "counts": [1, 0, 1]}, r"bag 1 has size 0"),
        ({"X": X, "offsets": [0, 3, 5], "counts": [1, 1]}, r"from 0 to the number of instances, 6"),
        ({"X": csr_array(X), "bags": IDS, "y": Y}, r"X must be dense, got a csr_array.*toarray"),
        ({"X": np.zeros((0, 2)), "bags": [], "y": []}, r"at least one instance"),
        ({"X": np.where(X == 7, np.nan, X), "bags": IDS, "y": Y}, r"row 3 holds NaN"),
        ({"X": np.where(X == 2, np.inf, X), "bags": IDS, "y": Y}, r"row 1 holds NaN or infinity"),
    ],
)
def test_bad_instances_and_ids_are_refused(arguments, message):
    with pytest.raises(BagDataError, match=message):
        Bags.from_arrays(**arguments)


@pytest.mark.parametrize("kind", ["string", "object", "Int64", "float", "datetime64[ns]"])
def test_missing_ids_of_any_kind_are_refused(kind):
    pandas = pytest.importorskip("pandas")
    ids = pandas.Series([1, 2, 1, 3, 2, 1]).astype(kind)
    ids[3] = None
    with pytest.raises(BagDataError, match="row 3 has none"):
        Bags.from_arrays(X, bags=ids, y=Y)


def test_a_proportion_that_is_no_count_warns():
    with pytest.warns(BagDataWarning, match=r"bag 's' has proportion 0.3 of 3 instances"):
        Bags.from_arrays(X, bags=IDS, proportions={"s": 0.3, "n": 0.5, "e": 1})


def test_single_precision_proportions_do_not_warn():
    sizes = np.full(3, 999)
    bags = np.repeat(np.arange(3), sizes)
    values = (np.array([123, 500, 998]) / 999).astype(np.float32)
    Bags.from_arrays(np.zeros((len(bags), 1)), bags=bags, proportions=values)


def test_make_bags_uses_each_instance_once():
    y = np.arange(103) % 2
    bags = make_bags(np.zeros((103, 1)), y, bag_size=10, seed=0)
    assert sorted(bags.rows) == list(range(103))
    assert bags.sizes.tolist() == [10] * 10 + [3]
    np.testing.assert_allclose(bags.proportions, bags.mean(y))
    dropped = make_bags(np.zeros((103, 1)), y, bag_size=10, seed=0, remainder="drop")
    assert dropped.sizes.tolist() == [10] * 10


def test_one_column_of_labels_is_binary():
    bags = make_bags(np.zeros((10, 1)), np.arange(10)[:, None] % 2, bag_size=2, seed=0)
    assert bags.task == "binary" and bags.proportions.shape == (5,)


@pytest.mark.parametrize(
    ("y", "bag_size", "message"),
    [([0, 1, 2, 0], 2, "labels 0 and 1"), ([0, 1], 2, "bag_size"), ([0, 1, 1, 0], 0, "bag_size")],
)
def test_make_bags_refuses(y, bag_size, message):
    with pytest.raises(BagDataError, match=message):
        make_bags(np.zeros((len(y), 1)), y, bag_size=bag_size, seed=0)


def test_split_keeps_bags_whole():
    bags = make_bags(np.zeros((100, 1)), np.arange(100) % 2, bag_size=10, seed=0)
    kept, aside = split_bags(bags, share=0.3, seed=1)
    assert sorted(kept.ids + aside.ids) == list(range(10))
    assert sorted([*kept.rows, *aside.rows]) == list(range(100))
    with pytest.raises(BagDataError, match="share"):
        split_bags(bags, share=0.01, seed=0)


@given(st.integers(2, 60), st.integers(1, 20), st.integers(0, 100))
def test_batches_cover_every_bag_once(n_bags, per_batch, epoch):
    batches = list(cut_batches(n_bags, bags_per_batch=per_batch, seed=0, epoch=epoch))
    assert sorted(np.concatenate(batches)) == list(range(n_bags))
    sizes = {len(batch) for batch in batches}
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(per_batch, n_bags)


def test_without_a_seed_bags_come_as_they_are():
    batches = cut_batches(7, bags_per_batch=3, seed=None, epoch=2)
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6]]
