"""The store loses nothing: not to a kill, not to a torn write, not to a second process."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from handmade import row, spec

import unbag
from unbag.errors import StoreError, StoreWarning
from unbag.experiments.packing import pack_arrays, unpack_arrays
from unbag.experiments.recovery import count_torn_frames
from unbag.experiments.store import Store

HERE = Path(__file__).parent

# Children take the package without its __init__, which imports torch and would take seconds.
PREAMBLE = f"""
import os, signal, sys, types
package = sys.modules["unbag"] = types.ModuleType("unbag")
package.__path__ = [{str(Path(unbag.__file__).parent)!r}]
sys.path.insert(0, {str(HERE)!r})
from handmade import row, spec
from unbag.experiments.store import Store
store = Store(sys.argv[1])
"""


def start(code, *arguments):
    command = [sys.executable, "-c", PREAMBLE + code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_killed(code, *arguments):
    """Run code that ends by killing itself, and return what it had printed."""
    process = start(code, *arguments)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    return output.split()


def seeds_in(path):
    with Store(path) as store:
        return {r.spec.seed for r in store.rows()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.sqlite"


def test_rows_come_back_as_they_were(path):
    with Store(path) as store:
        store.add([row(seed=3, errors=[0.5, float("nan")])])
    with Store(path) as store:
        [found] = store.rows()
    assert found.spec == spec(seed=3)
    assert found.outcome == {"seconds": 1.0, "device": "none"}
    np.testing.assert_array_equal(found.arrays["test_error"], np.float32([0.5, np.nan]))


def test_packing_keeps_names_shapes_and_order(rng):
    arrays = {"b": rng.normal(size=(3, 4)), "a": np.empty(0), "c": np.float32(2.0)}
    found = unpack_arrays(pack_arrays(arrays))
    assert list(found) == ["b", "a", "c"]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], np.asarray(array, dtype=np.float32))


def test_a_full_run_stays_small():
    curves = np.random.default_rng(0).integers(2000, size=(5, 100)) / 10_000
    assert len(pack_arrays(dict(zip("abcde", curves, strict=True)))) < 2500


def test_a_trial_is_stored_once(path):
    with Store(path) as store:
        store.add([row(errors=[0.1])])
        store.add([row(errors=[0.9])])
        [found] = store.rows()
    assert found.arrays["test_error"][0] == np.float32(0.1)


@pytest.mark.parametrize("n_rows", [1, 7, 50])
def test_every_row_that_was_reported_survives_a_kill(path, n_rows):
    code = """
for seed in range(int(sys.argv[2])):
    store.add([row(seed=seed)])
    print(seed, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    reported = run_killed(code, path, n_rows)
    assert len(reported) == n_rows
    assert seeds_in(path) == {int(seed) for seed in reported}


def test_a_kill_at_any_moment_loses_no_reported_row(path):
    """Killed from outside at a random point of a stream of writes, five times over."""
    code = """
for seed in range(int(sys.argv[2]), 10**9):
    store.add([row(seed=seed)])
    print(seed, flush=True)
"""
    rng = np.random.default_rng(0)
    reported: set[int] = set()
    for turn in range(5):
        process = start(code, path, 1000 * turn)
        lines = [process.stdout.readline() for _ in range(rng.integers(1, 40))]
        process.send_signal(signal.SIGKILL)
        lines += process.communicate(timeout=60)[0].splitlines()
        reported |= {int(line) for line in lines if line.strip()}
    assert reported <= seeds_in(path)


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


def test_something_else_is_not_opened_as_a_store(path):
    path.write_text("not a database, but long enough to be read as the header of one" * 10)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(path)


def test_a_claim_excludes_others_until_it_ends(path):
    keys = {spec(seed=seed).key for seed in range(4)}
    with Store(path) as one, Store(path) as two:
        first = {spec(seed=0).key, spec(seed=1).key}
        assert one.claim(first) == first
        assert two.claim(keys) == keys - first
        one.release([spec(seed=0).key])
        assert two.claim(first) == {spec(seed=0).key}
        one.add([row(seed=1)])
        assert two.claim(first) == {spec(seed=0).key}  # its own, still; the other is finished
    with Store(path) as three:
        assert three.claim(keys) == keys - {spec(seed=1).key}


def test_the_claims_of_a_killed_process_are_void(path):
    code = """
print(len(store.claim([spec(seed=0).key])), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_killed(code, path) == ["1"]
    with Store(path) as store:
        assert store.claim([spec(seed=0).key]) == {spec(seed=0).key}
    assert not list(path.parent.glob("*.owner-*"))


def test_the_claims_of_a_living_process_hold(path):
    process = start("store.claim([spec(seed=0).key])\nprint(1, flush=True)\ninput()", path)
    assert process.stdout.readline()
    with Store(path) as store:
        held = store.claim([spec(seed=0).key])
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        freed = store.claim([spec(seed=0).key])
    assert (held, freed) == (set(), {spec(seed=0).key})


RUN_ALL = """
print("ready", flush=True)
input()
for trial in (spec(seed=seed) for seed in range(60)):
    if store.claim([trial.key]):
        print(trial.seed, flush=True)
        store.add([row(trial)])
store.close()
"""


def seeds_run_by_three(path, code):
    Store(path).close()
    processes = [start(code, path) for _ in range(3)]
    assert all(process.stdout.readline() == "ready\n" for process in processes)
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return [int(seed) for p in processes for seed in p.communicate(timeout=60)[0].split()]


def test_processes_on_one_store_do_no_trial_twice(path):
    assert sorted(seeds_run_by_three(path, RUN_ALL)) == list(range(60))
    assert seeds_in(path) == set(range(60))


def test_without_claims_they_do(path):
    code = "store.claim = lambda keys: keys\n" + RUN_ALL
    assert len(seeds_run_by_three(path, code)) > 60


def test_a_row_of_another_process_is_seen(path):
    with Store(path) as one, Store(path) as two:
        two.rows()
        one.add([row(seed=5)])
        assert [r.spec.seed for r in two.rows()] == [5]


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
