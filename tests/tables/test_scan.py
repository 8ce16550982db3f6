"""Bags of a table: both shapes, any order of rows, and errors that say where."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.support.example_files import ROLES, make_table

from unbag.bags import Bags
from unbag.errors import BagDataError, BagDataWarning, TableError
from unbag.frames.chunks import TableInMemory
from unbag.tables import Roles, read_bags, scan_table


def test_a_table_gives_the_bags_of_its_arrays(rng):
    table, _ = make_table(rng, sizes=rng.integers(2, 9, 20))
    bags = read_bags(scan_table(TableInMemory(table, chunk_rows=13), ROLES))
    y, ids = table["rate"].to_numpy(), table["group"].to_numpy()
    wanted = Bags.from_arrays(bags.X, bags=ids, y=y)
    order = np.argsort(wanted.ids)
    np.testing.assert_array_equal(bags.sizes, wanted.sizes[order])
    np.testing.assert_array_equal(bags.proportions, wanted.proportions[order])
    np.testing.assert_array_equal(bags.mean(bags.X), wanted.mean(wanted.X)[order])


@pytest.mark.parametrize("text", [False, True])
def test_neither_chunks_nor_the_order_of_rows_change_the_index(rng, text):
    table, _ = make_table(rng, n_bags=30)
    if text:
        names = pa.array([f"bag {n}" for n in table["group"].to_pylist()])
        table = table.set_column(table.column_names.index("group"), "group", names)
    whole = scan_table(table, ROLES).index
    shuffled = table.take(rng.permutation(table.num_rows))
    found = scan_table(TableInMemory(shuffled, chunk_rows=17), ROLES).index
    assert found.ids.equals(whole.ids)
    np.testing.assert_array_equal(found.sizes, whole.sizes)
    np.testing.assert_array_equal(found.proportions, whole.proportions)


def test_counts_and_sizes_give_proportions():
    table = {"g": ["a", "a", "b"], "n": [1, 1, 0], "k": [2, 2, 1], "x": [1, 2, 3]}
    index = scan_table(pa.table(table), Roles("g", counts=("n",), size="k")).index
    np.testing.assert_array_equal(index.proportions, [0.5, 0.0])


def test_noise_is_that_of_what_is_named():
    """A count's variance is that of the proportion, times the square of the bag's size."""
    columns = {"n": [1.3, 1.3, -0.2], "v": [2.0, 2.0, 3.0], "rate": [0.65, 0.65, -0.2]}
    table = pa.table({"g": ["b", "b", "a"], "x": [1, 2, 3], "w": [0.5, 0.5, 3.0], **columns})
    counted = scan_table(table, Roles("g", counts=("n",), noise="v", ignored=("rate", "w"))).index
    shares = scan_table(table, Roles("g", ("rate",), noise="w", ignored=("n", "v"))).index
    for found in (counted, shares):
        np.testing.assert_array_equal(found.proportions, [-0.2, 0.65])
        np.testing.assert_array_equal(found.noise_variance, [3.0, 0.5])


def test_noise_of_counts_beside_proportions_is_refused(rng):
    table, _ = make_table(rng)
    table = table.append_column("v", pa.array(np.full(table.num_rows, 2.0)))
    with pytest.raises(BagDataError, match="variance of the counts"):
        scan_table(table, Roles("group", ("rate",), noise="v"))


def test_a_bag_table_gives_the_same_as_one_table(rng, tmp_path):
    table, _ = make_table(rng)
    keys = np.unique(table["group"].to_numpy())
    rates = [table["rate"][list(table["group"].to_numpy()).index(k)].as_py() for k in keys]
    pacsv.write_csv(pa.table({"group": keys[::-1], "rate": rates[::-1]}), tmp_path / "bags.csv")
    apart = scan_table(table.drop_columns(["rate"]), ROLES, bag_table=tmp_path / "bags.csv").index
    by_id = dict(zip(apart.ids.to_pylist(), apart.proportions, strict=True))
    assert by_id == dict(zip(map(str, keys), rates, strict=True))


def test_several_proportions_are_classes():
    table = {"g": [0, 0, 1], "a": [0.5, 0.5, 1], "b": [0.5, 0.5, 0], "x": [1, 2, 3]}
    index = scan_table(pa.table(table), Roles("g", proportions=("a", "b"))).index
    assert index.task == "multiclass" and index.proportions.shape == (2, 2)


GOOD = {"g": ["a", "a", "b"], "rate": [0.5, 0.5, 1.0], "x": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": [0.5, 0.4, 1.0]}, "row 2, column 'rate', bag 'a': 'rate' differs"),
        ({"rate": [0.5, 0.5, 1.5]}, "row 3, column 'rate', bag 'b': .* between 0 and 1.*--noise"),
        ({"rate": [50, 50, 100]}, "row 1, column 'rate'.*such bags.*Divide percentages by 100"),
        ({"rate": ["50%", "50%", "100%"]}, "row 1, column 'rate': '50%' is no number.*0.5 for 50%"),
        ({"rate": [0.5, 0.5, None]}, "row 3, column 'rate': the value is missing"),
        ({"g": ["a", None, "b"]}, "row 2, column 'g': the bag of this row is missing"),
        ({"g": ["a", "a", "a"], "rate": [0.5] * 3}, "all rows belong to one bag"),
        ({"x": [1.0, 1.0, 1.0]}, "x: not used: always the same"),
        ({"rate": ["1", "1", "x"]}, "row 3, column 'rate': 'x' is no number"),
    ],
)
def test_a_bad_bag_is_named(change, message):
    with pytest.raises(TableError, match=message):
        scan_table(pa.table(GOOD | change), Roles("g", proportions=("rate",)))


@pytest.mark.parametrize(
    ("columns", "roles", "message"),
    [
        ({"n": [3, 3, 0]}, Roles("g", counts=("n",)), "row 1, column 'n'.* the number of rows"),
        ({"n": [0.5, 0.5, 0]}, Roles("g", counts=("n",)), "column 'n', bag 'a'.* whole number"),
        ({"q": [0, 0, 2]}, Roles("g", ("rate", "q")), "row 3, column 'q', bag 'b': 'q' must lie"),
        ({"k": [2, 2, 2]}, Roles("g", ("rate",), size="k"), "row 3, column 'k'.* number of rows"),
        ({"s": [-1, -1, 0]}, Roles("g", ("rate",), noise="s"), "column 's'.* not be negative"),
        (
            {"rate": [50, 50, 100], "s": [0, 0, 0]},
            Roles("g", ("rate",), noise="s"),
            "column 'rate'.* between 0 and 1.* Divide percentages",
        ),
        (
            {"rate": [0.5, 0.5, 1.5], "s": [1, 1, 0]},
            Roles("g", ("rate",), noise="s"),
            "row 3, column 'rate', bag 'b'.*up to the stated noise",
        ),
        (
            {"n": [0.5, 0.5, 0.5], "s": [1, 1, 0]},
            Roles("g", counts=("n",), noise="s"),
            "column 'n', bag 'b'.* whole number",
        ),
        (
            {"n": [-9, -9, 1], "s": [0.01, 0.01, 0.01]},
            Roles("g", counts=("n",), noise="s"),
            "column 'n', bag 'a'.*up to the stated noise",
        ),
        ({}, Roles("g", ("ratio",)), "no column 'ratio'.*Did you mean 'rate'"),
    ],
)
def test_bad_columns_of_bags_are_named(columns, roles, message):
    with pytest.raises(TableError, match=message):
        scan_table(pa.table(GOOD | columns), roles)


def test_noise_of_variance_zero_is_no_noise():
    roles = Roles("g", ("rate",), noise="s")
    exact = scan_table(pa.table(GOOD | {"s": [0, 0, 0]}), roles).index
    assert exact.noise_variance is None
    noisy = scan_table(pa.table(GOOD | {"rate": [-0.5, -0.5, 1], "s": [1, 1, 0]}), roles).index
    assert noisy.noise_variance.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("bags", "message"),
    [
        ({"g": ["a"], "rate": [0.5]}, "bag 'b': the bag is not in the bag table"),
        ({"g": ["a", "b", "c"], "rate": [0.5, 1, 1]}, "bag 'c': the bag has no instances"),
        ({"g": ["a", "b", "b"], "rate": [0.5, 1, 1]}, "bag 'b': the bag occurs more than once"),
    ],
)
def test_bag_tables_must_match_the_instances(bags, message):
    instances = pa.table({"g": GOOD["g"], "x": GOOD["x"]})
    with pytest.raises(TableError, match=message):
        scan_table(instances, Roles("g", ("rate",)), bag_table=pa.table(bags))


def test_a_wrong_value_of_the_bag_table_is_found_there(tmp_path):
    instances = pa.table({"g": GOOD["g"], "x": GOOD["x"]})
    pacsv.write_csv(pa.table({"g": ["b", "a"], "rate": [1.0, 1.5]}), tmp_path / "bags.csv")
    with pytest.raises(TableError, match=r"bags\.csv, row 3, column 'rate', bag 'a': 'rate' must"):
        scan_table(instances, Roles("g", ("rate",)), bag_table=tmp_path / "bags.csv")


def test_the_row_that_differs_is_found_in_any_chunk():
    table = pa.table({"g": [0, 1] * 20, "rate": [0.5] * 33 + [0.4] + [0.5] * 6, "x": range(40)})
    with pytest.raises(TableError, match="row 34, column 'rate', bag 1: "):
        scan_table(TableInMemory(table, chunk_rows=7), Roles("g", ("rate",)))


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_decimal_comma_is_named(tmp_path, mark):
    """Semicolons often come with decimal commas."""
    lines = [["g", "x", "rate"], ["a", "1", "0,5"], ["b", "2", "0,5"]]
    (tmp_path / "t.csv").write_text("\n".join(mark.join(line) for line in lines))
    with pytest.raises(TableError, match=r"t\.csv, row 2, column 'rate': '0,5' is no number.*0\.5"):
        scan_table(tmp_path / "t.csv", Roles("g", ("rate",)))


@pytest.mark.parametrize(
    "named",
    [
        {"keys": ("rate",)},
        {"categories": ("zip",), "numbers": ("zip",)},
        {"ignored": ("zip",), "numbers": ("zip",)},
        {"categories": ("g",)},
    ],
)
def test_a_column_has_one_meaning(named):
    with pytest.raises(TableError, match="two roles"):
        Roles("g", ("rate",), **named)


def test_a_copy_of_the_bag_is_refused(rng):
    table, _ = make_table(rng)
    copy = pa.array([str(group) for group in table["group"].to_pylist()])
    table = table.append_column("again", copy)
    with pytest.raises(TableError, match=r"'again' is a copy of the bag column 'group'.*--ignore"):
        scan_table(TableInMemory(table, chunk_rows=13), ROLES)
    scan_table(table, Roles("group", ("rate",), ignored=("again",)))


def test_a_target_in_both_tables_is_said(rng):
    table, _ = make_table(rng)
    bags = table.select(["group", "rate"]).group_by("group").aggregate([("rate", "max")])
    bags = bags.rename_columns(["group", "rate"])
    with pytest.warns(BagDataWarning, match="'rate' is in both tables"):
        found = scan_table(table, ROLES, bag_table=bags)
    assert found.encoder.names == ["x", "z", "colour"]


def test_keys_that_repeat_are_said(rng):
    table, _ = make_table(rng)
    roles = Roles("group", ("rate",), keys=("key",))
    scan_table(table.append_column("key", pa.array(range(table.num_rows))), roles)
    with pytest.warns(BagDataWarning, match="key has 200 different values in 400 rows"):
        scan_table(table.append_column("key", pa.array(np.arange(400) // 2)), roles)


def test_rounded_proportions_have_the_noise_of_rounding(rng):
    table, _ = make_table(rng, sizes=np.full(60, 7))
    rounded = table.set_column(1, "rate", [np.round(table["rate"].to_numpy(), 1)])
    index = scan_table(rounded, Roles("group", ("rate",), noise="rounding")).index
    np.testing.assert_allclose(index.noise_variance, 0.01 / 12)
