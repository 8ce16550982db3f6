"""Made-up tables: their bags reveal what their labels say, and are random only if asked to be."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from unbag.datasets import make_clicks, make_visits, make_voters
from unbag.evaluation import check_made_bags
from unbag.tables import Roles, open_table, read_bags, scan_table

KEYS = {make_clicks: "event_id", make_voters: "voter", make_visits: "visit_id"}


def report_on(made, key):
    bag, size, positives = made.bags.column_names
    roles = Roles(bag, counts=(positives,), size=size, keys=(key,))
    return check_made_bags(read_bags(scan_table(made.rows, roles, bag_table=made.bags)))


@pytest.mark.parametrize("make", KEYS)
def test_bags_count_the_labels_of_their_rows(make, seed):
    made = make(40, seed=seed)
    _, size, positives = made.bags.column_names
    for number, name in enumerate(made.bags[made.bags.column_names[0]].to_pylist()):
        inside = made.bag_of_row == name
        assert inside.sum() == made.bags[size][number].as_py()
        assert made.labels[inside].sum() == made.bags[positives][number].as_py()
        assert (made.of_rows(positives)[inside] == made.labels[inside].sum()).all()
    assert len(set(made.rows[KEYS[make]].to_pylist())) == made.rows.num_rows
    assert 0.1 < made.labels.mean() < 0.9


@pytest.mark.parametrize("make", KEYS)
def test_a_seed_is_all_there_is(make):
    first, again, other = make(10, seed=1), make(10, seed=1), make(10, seed=2)
    assert first.rows.equals(again.rows) and first.bags.equals(again.bags)
    assert not first.rows.equals(other.rows)


def test_bags_are_random_unless_sorted():
    assert report_on(make_clicks(300, seed=0), "event_id").plausible
    for make in (make_voters, make_visits):
        assert report_on(make(300, seed=0, sorting=0.0), KEYS[make]).plausible
        raised = {f.check for f in report_on(make(300, seed=0, sorting=0.5), KEYS[make]).raised}
        assert raised >= {"dispersion", "homogeneity"}


@pytest.mark.parametrize("sorting", [-0.1, 1.5, np.nan])
def test_an_impossible_sorting_is_refused(sorting):
    with pytest.raises(ValueError, match="sorting must lie between 0 and 1"):
        make_voters(5, seed=0, sorting=sorting)


@pytest.mark.parametrize(
    ("name", "n", "seed", "first"), [("conversions", 300, 0, 0), ("conversions_next", 120, 1, 9000)]
)
def test_the_shipped_tables_are_the_generator_s(tmp_path, name, n, seed, first):
    made = make_clicks(n, seed=seed, first=first)
    table = made.rows.append_column("conversions", pa.array(made.of_rows("conversions")))
    pacsv.write_csv(table, tmp_path / "t.csv", pacsv.WriteOptions(quoting_style="none"))
    written, shipped = (
        pa.Table.from_batches(chunk.batch for chunk in open_table(source).chunks())
        for source in (str(tmp_path / "t.csv"), f"example:{name}")
    )
    assert written.equals(shipped)
