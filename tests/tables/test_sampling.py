"""Columns found out from some rows are used as if all had been looked at."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unbag.errors import TableError
from unbag.frames import TableEncoder
from unbag.tables import Roles, open_table, scan_table
from unbag.tables.scan import sampled_groups, scan_columns

GROUP, N_GROUPS = 50, 40
SAMPLED = 10 * GROUP
UNSEEN = 1  # a row of the first group, which is not among the sampled ones


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    monkeypatch.setattr("unbag.tables.scan.SAMPLE_ROWS", SAMPLED)


@pytest.fixture
def columns(rng):
    n = GROUP * N_GROUPS
    return {
        "bag": np.arange(n) % 100,
        "rate": (np.arange(n) % 100) / 100,
        "x": rng.normal(3, 2, n),
        "single": rng.normal(size=n).astype(np.float32),
        "whole": rng.integers(0, 9, n),
    }


@pytest.fixture
def written(tmp_path):
    def write(columns, name="t.parquet", **options):
        path = tmp_path / name
        pq.write_table(pa.table(columns), path, row_group_size=GROUP, **options)
        return path

    return write


def scans_of(path, names=("x",), **declared):
    return {s.name: s for s in scan_columns(open_table(path), names, **declared)}


def encoder_of(path):
    return TableEncoder().fit_scans(scan_columns(open_table(path), ["x"]))


def test_floating_columns_are_judged_by_some_rows_and_others_by_all(columns, written):
    found = scans_of(written(columns), ["x", "single", "whole"])
    assert {n: s.moments.count for n, s in found.items()} == {
        "x": SAMPLED,
        "single": SAMPLED,
        "whole": GROUP * N_GROUPS,
    }
    assert found["x"].decided() == "number"
    assert abs(found["x"].moments.mean - 3) < 5 * 2 / np.sqrt(SAMPLED)
    assert abs(found["x"].moments.scale / 2 - 1) < 5 / np.sqrt(2 * SAMPLED)


def test_rows_of_all_bags_are_counted(columns, written):
    table = scan_table(written(columns), Roles("bag", ("rate",)))
    assert table.index.n_rows == GROUP * N_GROUPS and table.index.n_bags == 100
    assert table.encoder.features == ["x", "single", "whole"]


def test_a_missing_value_that_the_file_notes_is_found_wherever_it_is(columns, written):
    x = columns["x"].tolist()
    x[UNSEEN] = None
    encoder = encoder_of(written(columns | {"x": x}))
    assert encoder.features == ["x", "x missing"]


def test_nan_in_no_row_that_was_seen_becomes_the_mean(columns, written):
    columns["x"][UNSEEN] = np.nan
    path = written(columns)
    encoder = encoder_of(path)
    assert encoder.features == ["x"] and encoder.transform(pq.read_table(path))[UNSEEN, 0] == 0


def test_nan_in_a_row_that_was_seen_gets_a_feature(columns, written):
    columns["x"][GROUP * sampled_groups([GROUP] * N_GROUPS)[0]] = np.nan
    assert encoder_of(written(columns)).features == ["x", "x missing"]


@pytest.mark.parametrize("value", [500.0, 1e9])
def test_a_column_that_goes_far_beyond_its_sample_is_looked_at_in_full(columns, written, value):
    """A mean of 3 and a scale of 2: the nearer one is some 250 standard deviations out."""
    columns["x"][UNSEEN] = value
    scan = scans_of(written(columns))["x"]
    assert scan.moments.count == GROUP * N_GROUPS and scan.moments.high == value


def test_few_standard_deviations_beyond_its_sample_are_not_far(columns, written):
    columns["x"][UNSEEN] = 100.0
    assert scans_of(written(columns))["x"].moments.count == SAMPLED


def test_a_column_that_is_constant_where_it_was_seen_is_looked_at_in_full(columns, written):
    x = np.zeros(GROUP * N_GROUPS)
    assert scans_of(written({"x": x}))["x"].decided() == "constant"
    x[UNSEEN] = 1
    assert scans_of(written({"x": x}))["x"].decided() == "number"


def test_an_infinite_value_is_named_wherever_it_is(columns, written):
    columns["x"][UNSEEN] = np.inf
    with pytest.raises(TableError, match=rf"row {UNSEEN + 1}, column 'x': the value is infinite"):
        scans_of(written(columns))


def test_rows_of_a_sample_have_the_numbers_they_have_in_the_file(columns, written):
    path = written(columns)
    source = open_table(path)
    [*chunks] = source.chunks_of(path, ["x"], groups=[3, 5])
    assert [chunk.first_row for chunk in chunks] == [3 * GROUP + 1, 5 * GROUP + 1]


@pytest.mark.parametrize("of_all", ["statistics", "kind", "declared", "small", "memory"])
def test_without_notes_all_rows_are_looked_at(columns, written, of_all, monkeypatch):
    declared = {"categories": ["x"]} if of_all == "declared" else {}
    columns = {"x": columns["whole" if of_all == "kind" else "x"]}
    if of_all == "small":
        monkeypatch.setattr("unbag.tables.scan.SAMPLE_ROWS", GROUP * N_GROUPS // 2 + 1)
    path = written(columns, write_statistics=of_all != "statistics")
    source = pa.table(columns) if of_all == "memory" else path
    scan = scans_of(source, **declared)["x"]
    assert max(scan.moments.count, scan.n_values) == GROUP * N_GROUPS


def test_several_files_are_one_table(columns, written, tmp_path):
    half = GROUP * N_GROUPS // 2
    written({"x": columns["x"][:half]}, "a.parquet")
    written({"x": columns["x"][half:]}, "b.parquet")
    assert scans_of(tmp_path)["x"].moments.count == SAMPLED
    written({"x": columns["x"][:half].astype(int)}, "c.parquet")
    assert scans_of(tmp_path)["x"].moments.count == 3 * half


def test_a_sample_is_spread_over_the_row_groups():
    assert sampled_groups([1] * 19) is None  # half of them or more: then all
    chosen = sampled_groups([SAMPLED] * 1000)
    assert len(chosen) == 10 and np.diff(chosen).tolist() == [100] * 9 and chosen[0] == 50
    many = sampled_groups([SAMPLED // 100] * 1000)
    assert len(many) == 100 and len(set(many)) == 100
