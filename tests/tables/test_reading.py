"""Every way a table can come in gives the same rows."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from tests.support.example_files import ROLES, make_table

from unbag.errors import TableError
from unbag.tables import Roles, open_table, read_bags, reading, scan_table

ENDINGS = (".gz", ".bz2", ".zst")

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


WRITERS = {
    "t.csv": lambda table, path: pacsv.write_csv(table, path),
    "t.tsv": lambda table, path: write_text(table, path, "\t"),
    "semicolons.csv": lambda table, path: write_text(table, path, ";"),
    "bars.csv": lambda table, path: write_text(table, path, "|"),
    **{f"t.csv{ending}": lambda table, path: compress(path, csv_of(table)) for ending in ENDINGS},
    **{
        f"t.jsonl{ending}": lambda table, path: compress(path, json_of(table)) for ending in ENDINGS
    },
    "t.ndjson": lambda table, path: path.write_bytes(json_of(table)),
    "t.parquet": pq.write_table,
    "t.feather": feather.write_feather,
    "plain.feather": lambda table, path: feather.write_feather(table, path, "uncompressed"),
    "t.arrow": lambda table, path: write_stream(table, path),
}


def csv_of(table, mark=","):
    sink = pa.BufferOutputStream()
    pacsv.write_csv(table, sink, pacsv.WriteOptions(delimiter=mark))
    return sink.getvalue().to_pybytes()


def json_of(table):
    return b"".join(json.dumps(row).encode() + b"\n" for row in table.to_pylist())


def write_text(table, path, mark):
    path.write_bytes(csv_of(table, mark))


def compress(path, content):
    with pa.output_stream(str(path), compression="detect") as stream:
        stream.write(content)


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_bags_and_features(tmp_path, rng, name):
    table, _ = make_table(rng)
    WRITERS[name](table, tmp_path / name)
    found, wanted = (read_bags(scan_table(t, ROLES)) for t in (tmp_path / name, table))
    assert sorted(map(str, found.ids)) == sorted(map(str, wanted.ids))
    order = np.argsort([int(i) for i in found.ids])
    np.testing.assert_allclose(found.mean(found.X)[order], wanted.mean(wanted.X), atol=1e-5)
    chunks = list(open_table(tmp_path / name, chunk_rows=7).chunks(["x", "group"]))
    assert sum(chunk.batch.num_rows for chunk in chunks) == table.num_rows
    assert all(chunk.batch.schema.names == ["x", "group"] for chunk in chunks)


def test_the_separator_is_that_of_the_header_outside_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('"a, b, and c";x\n1;2\n')
    assert open_table(tmp_path / "t.csv").names == ["a, b, and c", "x"]


def test_folders_that_name_a_column_and_its_value_are_a_column(tmp_path, rng):
    table, _ = make_table(rng)
    pq.write_to_dataset(table, tmp_path / "t", partition_cols=["group"])
    (tmp_path / "t" / "_SUCCESS").write_text("")
    for source in (tmp_path / "t", str(tmp_path / "t" / "group=*" / "*.parquet")):
        found, wanted = (scan_table(t, ROLES).index for t in (source, table))
        sizes = dict(zip(map(int, found.ids.to_pylist()), found.sizes.tolist(), strict=True))
        assert sizes == dict(zip(wanted.ids.to_pylist(), wanted.sizes.tolist(), strict=True))
    [chunk, *_] = open_table(tmp_path / "t").chunks(["group"])
    assert chunk.batch.num_rows == 10 and chunk.batch.schema.names == ["group"]


def test_lines_of_json_may_lack_a_column_and_change_from_whole_numbers_to_fractions(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(reading, "JSON_BYTES", 1)
    lines = ['{"group": "a", "rate": 0, "x": 1}', '{"group": "b", "rate": 1}']
    lines.append('{"group": "b", "rate": 1, "x": 2.5}')
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    found = scan_table(tmp_path / "t.jsonl", Roles("group", ("rate",)))
    assert found.encoder.features == ["x", "x missing"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_every_row_of_every_row_group_is_scanned(tmp_path, rng, value):
    n = 2000
    bag, x = np.arange(n) % 100, rng.normal(3, 2, n)
    x[1] = value
    table = pa.table({"group": bag, "rate": bag / 100, "x": x})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    roles = Roles("group", ("rate",))
    if np.isinf(value):
        with pytest.raises(TableError, match="row 2, column 'x': the value is infinite"):
            scan_table(tmp_path / "t.parquet", roles)
    else:
        found = scan_table(tmp_path / "t.parquet", roles)
        assert found.index.n_rows == n and found.encoder.features == ["x", "x missing"]


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
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "UTF-16. Save the file as UTF-8"),
        ("t.csv", b"a,b\n1,2\n3,\xff\xfe\n", "row 3, column 'b': the text is not UTF-8"),
        ("t.parquet", b"PAR1 and nothing else", "cannot be read"),
        ("t.xlsx", b"x", "must end in"),
        ("t.parquet.gz", b"x", "must end in"),
        ("t.csv.gz", b"a,b\n1,2\n", "cannot be read"),
        ("t.feather", b"ARROW1 and nothing else", "cannot be read"),
        ("t.jsonl", b"", "the file is empty"),
        ("t.jsonl", b'{"x": 1}\n{"x": }\n', "cannot be read: JSON parse error.*row 1"),
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
