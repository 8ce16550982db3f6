"""The sums of all bags, from chunks of rows in any order, and refusals."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.example_files import ROLES, make_table

from unbag.errors import TableError
from unbag.frames.chunks import TableInMemory
from unbag.parallel import ProcessExecutor, SerialExecutor
from unbag.tables import read_bags, scan_table
from unbag.tables.out_of_core import read_with_sums

SIZES = [3, 5, 2, 40, 7, 4, 6, 60, 5, 3, 2, 8]


@pytest.fixture
def table(rng):
    rows, _ = make_table(rng, sizes=SIZES)
    return scan_table(TableInMemory(rows, chunk_rows=11), ROLES)


def check(table, executor):
    """The sums are those of the bags in memory, and the bags asked for come whole."""
    chosen, whole = np.array([1, 4, 7]), read_bags(table).gathered()
    bags, sums = read_with_sums(table, chosen, executor)
    np.testing.assert_allclose(sums, np.add.reduceat(whole.X, whole.starts), rtol=1e-5, atol=1e-4)
    assert bags.ids == [whole.ids[position] for position in chosen]
    np.testing.assert_array_equal(bags.gathered().X, whole.take(chosen).gathered().X)


def test_sums_are_those_of_the_bags(table):
    check(table, SerialExecutor())


def test_workers_add_up_the_sums_of_files(table, tmp_path):
    for number in range(3):
        pq.write_table(table.source.table.slice(number * 50, 50), tmp_path / f"{number}.parquet")
    check(scan_table(tmp_path, ROLES), ProcessExecutor(2))


@pytest.mark.parametrize("change", [lambda t: t.slice(1), lambda t: pa.concat_tables([t, t[:1]])])
def test_a_table_that_changed_is_refused(table, change):
    changed = replace(table, source=TableInMemory(change(table.source.table), chunk_rows=11))
    with pytest.raises(TableError, match="changed during reading"):
        read_with_sums(changed, np.arange(12), SerialExecutor())
