"""Columns that are the labels of their bags under another name."""

import numpy as np
import pyarrow as pa
import pytest
from tests.support.example_files import ROLES, make_table

from unbag import learn_table
from unbag.errors import TableError
from unbag.tables import FitOptions, Roles, read_bags, scan_table
from unbag.tables.leaks import refuse_leaks

RIDGE = FitOptions(models=("ridge",))
LARGE = FitOptions(models=("ridge",), memory=10_000)
LEAKS = {
    "the proportion": lambda rate, size: rate,
    "the percentage": lambda rate, size: (100 * rate).astype(np.float32),
    "the count": lambda rate, size: np.round(rate * size).astype(int),
    "the proportion of other labels": lambda rate, size: 1 - rate,
    "the count of other labels": lambda rate, size: size - rate * size,
}


def table_with(rng, values_of):
    """A table of unequal bags, a column more made of each row's bag."""
    table, _ = make_table(rng, sizes=rng.integers(5, 30, 40))
    group = table["group"].to_numpy()
    values = values_of(table["rate"].to_numpy(), np.bincount(group)[group])
    return table.append_column("more", pa.array(values))


@pytest.mark.parametrize("options", [RIDGE, LARGE], ids=["memory", "large"])
@pytest.mark.parametrize("what", LEAKS)
def test_what_tells_the_labels_of_a_bag_is_refused(rng, what, options):
    table = table_with(rng, LEAKS[what])
    with pytest.raises(TableError, match=f"'more' is {what} in every bag.*--ignore"):
        learn_table(table, ROLES, options=options)
    learn_table(table, Roles("group", ("rate",), ignored=("more",)), options=options)


LABELS = [lambda own: own, lambda own: 100.0 * own, lambda own: own == 0]


@pytest.mark.parametrize("written", LABELS, ids=["labels", "percentages", "negated"])
def test_labels_themselves_are_refused(rng, written):
    table, labels = make_table(rng, sizes=rng.integers(5, 30, 40))
    table = table.append_column("more", pa.array(written(labels)))
    with pytest.raises(TableError, match=r"'more' has the .* as its mean in every bag.*--ignore"):
        learn_table(table, ROLES, options=RIDGE)
    flipped = np.where(np.arange(len(labels)) == 3, 1 - labels, labels)  # no copy of them
    table = table.drop_columns("more").append_column("more", pa.array(written(flipped)))
    assert "more" in learn_table(table, ROLES, options=RIDGE).encoder.names


def test_a_class_that_was_not_named_is_refused(rng):
    table = table_with(rng, lambda rate, size: 0.4 * (1 - rate))
    table = table.append_column("last", pa.array(0.6 * (1 - table["rate"].to_numpy())))
    found = scan_table(table, Roles("group", ("rate", "more"), task="multilabel"))
    with pytest.raises(TableError, match="'last' is the proportion of other labels"):
        refuse_leaks(read_bags(found), found.encoder)


@pytest.mark.parametrize(
    "values_of",
    [
        lambda rate, size: size,
        lambda rate, size: 20_000 + 3_000.5 * rate,  # a region's income
        lambda rate, size: rate + np.arange(len(rate)) % 2,
    ],
    ids=["size", "income", "varies within bags"],
)
def test_other_columns_of_bags_are_learned_from(rng, values_of):
    model = learn_table(table_with(rng, values_of), ROLES, options=RIDGE)
    assert "more" in model.encoder.names


def test_one_value_a_bag_comes_with_a_warning(rng):
    model = learn_table(table_with(rng, lambda rate, size: size), ROLES, options=RIDGE)
    raised = {f["check"]: f["detail"] for f in model.record["checks"]["findings"] if f["raised"]}
    assert "more" in raised["one_value"]
