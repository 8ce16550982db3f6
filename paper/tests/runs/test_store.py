"""The store loses nothing: not to a kill, not to a torn write, not to a second process."""

import os
import signal

import numpy as np
import pytest
from paper.tests.support.children import run_killed, seeds_in, start
from paper.tests.support.handmade import row, spec

from unbag_paper.runs.packing import pack_arrays, unpack_arrays
from unbag_paper.runs.rows import Store


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
