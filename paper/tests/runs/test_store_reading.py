"""What can be read is read: from stores cut off, damaged, read-only, or being written."""

import shutil
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest
from paper.tests.support.children import run_killed, seeds_in
from paper.tests.support.handmade import row

from unbag.errors import StoreError, StoreWarning
from unbag_paper.runs.recovery import count_torn_frames
from unbag_paper.runs.rows import Store, read_rows

LONG = np.random.default_rng(0).random(3000)  # so that a row fills several pages


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.sqlite"


KILLED_IN_A_WRITE = """
store.add([row(seed=0)])
store._database.execute("PRAGMA cache_size = 1")  # so that pages reach the log before the commit
store._database.execute("BEGIN IMMEDIATE")
store._insert([row(seed=seed)._stored() for seed in range(1, 60)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_write_cut_off_by_a_kill_is_dropped_and_said(path):
    run_killed(KILLED_IN_A_WRITE, path)
    assert count_torn_frames(Path(f"{path}-wal")) > 0
    with pytest.warns(StoreWarning, match="unfinished pages"):
        assert seeds_in(path) == {0}
    assert seeds_in(path) == {0}  # and said once only


@pytest.mark.parametrize("n_bytes", [1, 20, 3000, 4120])
def test_a_torn_last_record_is_recovered_and_said(path, n_bytes):
    """As after a power cut: the last bytes of the log never reached the disk."""
    code = """
for seed in range(3):
    store.add([row(seed=seed)])
os.kill(os.getpid(), signal.SIGKILL)
"""
    run_killed(code, path)
    log = Path(f"{path}-wal")
    log.write_bytes(log.read_bytes()[:-n_bytes])
    with pytest.warns(StoreWarning, match="was cut off"):
        found = seeds_in(path)
    assert found == {0, 1}


def test_a_clean_store_is_opened_without_a_word(path):
    for seed in range(3):
        with Store(path) as store:
            store.add([row(seed=seed)])
    assert seeds_in(path) == {0, 1, 2}


def change_arrays(path, change):
    database = sqlite3.connect(path)
    [(raw,)] = database.execute("SELECT arrays FROM rows WHERE id = 2")
    database.execute("UPDATE rows SET arrays = ? WHERE id = 2", (change(raw),))
    database.commit()
    database.close()


def test_a_damaged_row_is_dropped_and_said(path):
    with Store(path) as store:
        store.add([row(seed=seed) for seed in range(3)])
    change_arrays(path, lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.warns(StoreWarning, match="1 damaged"):
        assert seeds_in(path) == {0, 2}


def test_a_trial_whose_row_was_overwritten_can_be_run_again(path):
    lost = row(seed=1)
    with Store(path) as store:
        store.add([row(seed=0), lost, row(seed=2)])
    text = lost.spec.key + lost.spec.to_json()
    raw = path.read_bytes()
    assert raw.count(text.encode()) == 1
    path.write_bytes(raw.replace(text.encode(), b"\xff" * len(text)))
    with pytest.warns(StoreWarning, match="1 damaged"):
        assert seeds_in(path) == {0, 2}
    with Store(path) as store:
        store.add([lost])  # which the index of keys must not refuse
    assert seeds_in(path) == {0, 1, 2}


def test_a_value_of_another_type_is_damage(path):
    with Store(path) as store:
        store.add([row(seed=seed) for seed in range(3)])
    change_arrays(path, lambda raw: "text")
    with pytest.warns(StoreWarning, match="1 damaged"):
        assert {r.spec.seed for r in read_rows(path)} == {0, 2}
    with pytest.warns(StoreWarning, match="1 damaged"):
        assert seeds_in(path) == {0, 2}


@pytest.mark.parametrize("page", [3, 5, 9, 12])
def test_a_store_with_a_damaged_page_is_not_opened_but_merges(path, tmp_path, page):
    with Store(path) as store:
        for seed in range(60):
            store.add([row(seed=seed, errors=LONG)])
    raw = bytearray(path.read_bytes())
    raw[page * 4096 : (page + 1) * 4096] = b"\xff" * 4096
    path.write_bytes(raw)
    with pytest.raises(StoreError, match=r"cannot be opened.*reproduce merge"):
        Store(path)
    assert not list(tmp_path.glob("*.owner-*"))
    with Store(tmp_path / "new.sqlite") as store, warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        assert store.merge(path) >= 59


def test_a_damaged_list_of_tables_is_said(path):
    Store(path).close()
    raw = path.read_bytes()
    damaged = raw.replace(b"tablerowsrows", b"tabler\xffwsrows")  # which the error quotes
    path.write_bytes(damaged.replace(b"CREATE TABLE rows (", b"CREATE TABLE rows )"))
    for read in (Store, read_rows):
        with pytest.raises(StoreError, match="cannot be"):
            read(path)


def test_something_else_is_not_opened_as_a_store(path):
    path.write_text("not a database, but long enough to be read as the header of one" * 10)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(path)


def test_stores_merge_without_repeating_rows(tmp_path, path):
    other = tmp_path / "elsewhere" / "rows.sqlite"
    with Store(other) as store:
        store.add([row(seed=seed) for seed in (1, 2, 3)])
    with Store(path) as store:
        store.add([row(seed=seed) for seed in (0, 1)])
        assert store.merge(other) == 2
        assert store.merge(other) == 0
        store.compact()
        store.add([row(seed=9)])
        assert {r.spec.seed for r in store.rows()} == {0, 1, 2, 3, 9}
    assert not Path(f"{path}-wal").exists()


def test_a_store_killed_elsewhere_merges_from_a_folder_that_cannot_be_written(tmp_path, path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    code = "store.add([row(seed=4)])\nos.kill(os.getpid(), signal.SIGKILL)"
    run_killed(code, folder / "rows.sqlite")
    folder.chmod(0o555)
    try:
        with Store(path) as store:
            assert store.merge(folder / "rows.sqlite") == 1
    finally:
        folder.chmod(0o755)


def test_rows_that_do_not_know_their_commit_are_told_it(tmp_path, path):
    other = tmp_path / "other.sqlite"
    known, unknown = row(seed=1), row(seed=2)
    known.outcome["commit"], unknown.outcome["commit"] = "abc", "unknown"
    with Store(other) as store:
        store.add([known, unknown])
    with Store(path) as store:
        store.merge(other, commit="def")
        found = {r.spec.seed: r for r in store.rows()}
    assert [found[seed].outcome["commit"] for seed in (1, 2)] == ["abc", "def"]
    np.testing.assert_array_equal(found[2].arrays["loss"], np.float32(unknown.arrays["loss"]))
    assert seeds_in(path) == {1, 2}  # checksums hold


def test_merging_nothing_is_an_error(tmp_path, path):
    with Store(path) as store, pytest.raises(StoreError, match="no store"):
        store.merge(tmp_path / "missing.sqlite")


def test_damaged_rows_are_not_merged(tmp_path, path):
    other = tmp_path / "other.sqlite"
    with Store(other) as store:
        store.add([row(seed=seed) for seed in range(2)])
    database = sqlite3.connect(other)
    database.execute("UPDATE rows SET outcome = '{}' WHERE id = 1")
    database.commit()
    database.close()
    with Store(path) as store, pytest.warns(StoreWarning, match="1 damaged"):
        assert store.merge(other) == 1


def test_reading_while_another_writes_loses_nothing(path, monkeypatch):
    """Files copied one by one would lack what a checkpoint moves between them."""
    with Store(path) as store:
        for seed in range(20):
            store.add([row(seed=seed, errors=LONG)])

        def copy_and_be_overtaken(part, copy):
            copied = copyfile(part, copy)
            store._database.execute("PRAGMA wal_checkpoint(RESTART)")
            store.add([row(seed=1000 + len(store.keys()), errors=LONG)])
            return copied

        copyfile = shutil.copyfile
        monkeypatch.setattr(shutil, "copyfile", copy_and_be_overtaken)
        found = {r.spec.seed for r in read_rows(path)}
    assert found >= set(range(20))


def test_reading_sees_what_is_only_in_the_log(path):
    with Store(path) as store:
        store.add([row(seed=1)])
        assert [r.spec.seed for r in read_rows(path)] == [1]


def test_reading_leaves_nothing_beside_the_store(path):
    with Store(path) as store:
        store.add([row(seed=1)])
    before = path.read_bytes()
    read_rows(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_a_log_without_its_index_is_read_as_it_lies_there(path):
    """As a store that was killed, and then copied without the index."""
    run_killed("store.add([row(seed=4)])\nos.kill(os.getpid(), signal.SIGKILL)", path)
    Path(f"{path}-shm").unlink()
    before = {file.name for file in path.parent.iterdir()}
    assert [r.spec.seed for r in read_rows(path)] == [4]
    assert {file.name for file in path.parent.iterdir()} == before
