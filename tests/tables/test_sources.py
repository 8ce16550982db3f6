"""Every way a table can come in gives the same rows."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from unbag.errors import TableError
from unbag.tables import open_table

TABLE = pa.table({"g": ["a", "b", "a"], "x": [1.5, 2.5, None]})


def rows_of(source):
    return pa.Table.from_batches([chunk.batch for chunk in open_table(source).chunks()])


FRAMES = [TABLE, pd.DataFrame(TABLE.to_pydict()), pl.from_arrow(TABLE), pl.from_arrow(TABLE).lazy()]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_frames_are_tables(frame):
    assert rows_of(frame)["g"].to_pylist() == ["a", "b", "a"]


def test_pandas_keeps_its_index_to_itself():
    assert open_table(pd.DataFrame({"x": [1, 2]}, index=[7, 8])).names == ["x"]


def test_a_folder_and_a_pattern_are_read_file_by_file(tmp_path):
    for number in (0, 1):
        pq.write_table(TABLE, tmp_path / f"part-{number}.parquet")
    for source in (tmp_path, str(tmp_path / "part-*.parquet")):
        assert rows_of(source).num_rows == 6


def test_chunks_know_their_file_and_row(tmp_path):
    path = tmp_path / "t.csv"
    pacsv.write_csv(TABLE, path)
    [chunk] = open_table(path).chunks()
    assert chunk.at(1, "x") == f"{path}, row 3, column 'x'"  # row 1 is the header


def test_parquet_comes_in_chunks_of_the_size_asked_for(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    chunks = open_table(tmp_path / "t.parquet", chunk_rows=2).chunks(["x"])
    assert [(c.batch.num_rows, c.first_row) for c in chunks] == [(2, 1), (1, 3)]


def test_row_groups_smaller_and_larger_than_a_chunk_come_in_order(tmp_path):
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema({"x": pa.int64(), "y": pa.int64()})) as writer:
        for start, size in [(0, 2), (2, 5), (7, 1)]:
            x = pa.array(range(start, start + size))
            writer.write_table(pa.table({"x": x, "y": x}), row_group_size=10)
    chunks = list(open_table(path, chunk_rows=3).chunks(["y", "x"]))
    assert [(c.batch.num_rows, c.first_row) for c in chunks] == [(2, 1), (3, 3), (2, 6), (1, 8)]
    assert [x for c in chunks for x in c.batch.column("x").to_pylist()] == list(range(8))
    assert all(c.batch.schema.names == ["y", "x"] for c in chunks)


def test_columns_must_agree_between_files(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(TABLE.drop_columns(["x"]), tmp_path / "b.parquet")
    with pytest.raises(TableError, match=r"b\.parquet: column 'x' is missing"):
        open_table(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "Empty CSV"),
        ("t.csv", b"a,a\n1,2\n", "'a' comes more than once"),
        ("t.csv", b"a,b\n1,2\n3\n", "Row #3: Expected 2 columns, got 1"),
        ("t.csv", b"a,b\n1,2\n3,\xff\xfe\n", "row 3, column 'b': the text is not UTF-8"),
        ("t.parquet", b"PAR1 and nothing else", "cannot be read"),
        ("t.xlsx", b"x", "must end in"),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message) as caught:
        list(open_table(tmp_path / name).chunks())
    assert name in str(caught.value)


@pytest.mark.parametrize("source", ["nowhere.csv", "example:nothing", 3])
def test_what_is_not_there_is_refused(source):
    with pytest.raises(TableError):
        open_table(source)
