"""Rows lose nothing: not to a kill, not to a damaged part, not to a second process."""

import signal
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from paper.tests.support.children import run_killed, seeds_in, start
from paper.tests.support.handmade import row, spec

from unbag_paper.errors import StoreError, StoreWarning
from unbag_paper.runs.rows import Store, read_rows


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "rows"


def parts_in(folder):
    return sorted(folder.glob("*.parquet"))


def test_rows_come_back_as_they_were(folder):
    Store(folder).add([row(seed=3, errors=[0.5, float("nan")])])
    [found] = read_rows(folder)
    assert found.spec == spec(seed=3)
    assert found.outcome == {"seconds": 1.0, "device": "none"}
    np.testing.assert_array_equal(found.arrays["test_error"], np.float32([0.5, np.nan]))


def test_rows_of_one_part_may_hold_other_arrays(folder):
    first, second = row(seed=0), row(seed=1)
    del first.arrays["loss"]
    second.arrays["penalty"] = np.empty(0)
    Store(folder).add([first, second])
    found = [set(r.arrays) for r in read_rows(folder)]
    assert found == [set(first.arrays), set(second.arrays)]


@pytest.mark.parametrize("arrays", [{"a": np.zeros((2, 2))}, {"spec": np.zeros(2)}])
def test_arrays_that_do_not_fit_are_refused(folder, arrays):
    wrong = row()
    wrong.arrays.update(arrays)
    with pytest.raises(ValueError, match="one axis"):
        Store(folder).add([wrong])
    assert not parts_in(folder)


def test_a_full_stack_stays_small(folder):
    rng = np.random.default_rng(0)
    Store(folder).add(row(seed=i, errors=rng.integers(2000, size=100) / 1e4) for i in range(70))
    [part] = parts_in(folder)
    assert part.stat().st_size < 70 * 1500


def test_anybody_can_read_a_part(folder):
    Store(folder).add([row(seed=3)])
    [part] = parts_in(folder)
    assert pq.read_table(part)["test_error"].to_pylist() == [np.float32([0.3, 0.2, 0.1]).tolist()]


def test_a_trial_counts_once_and_the_first_row_is_kept(folder):
    store = Store(folder)
    store.add([row(errors=[0.1])])
    store.add([row(errors=[0.9])])
    for rows in (store.rows(), read_rows(folder)):
        [found] = rows
        assert found.arrays["test_error"][0] == np.float32(0.1)


def test_a_row_of_another_process_is_seen(folder):
    one, two = Store(folder), Store(folder)
    assert two.rows() == []
    one.add([row(seed=5)])
    assert [r.spec.seed for r in two.rows()] == [5]


def test_no_rows_make_no_part(folder):
    Store(folder).add([])
    assert not folder.exists()


@pytest.mark.parametrize("n_rows", [1, 7, 50])
def test_every_row_that_was_reported_survives_a_kill(folder, n_rows):
    code = """
for seed in range(int(sys.argv[2])):
    store.add([row(seed=seed)])
    print(seed, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    reported = run_killed(code, folder, n_rows)
    assert len(reported) == n_rows
    assert seeds_in(folder) == list(range(n_rows))


# Each stops the second `add` at another place of its way to the disk.
KILLS = {
    "before the first byte": """
def die(*arguments): os.kill(os.getpid(), signal.SIGKILL)
rows._write_table = die
""",
    "inside the file": """
import io
write = rows._write_table
def write_half(table, file):
    whole = io.BytesIO()
    write(table, whole)
    file.write(whole.getvalue()[: whole.tell() // 2])
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
rows._write_table = write_half
""",
    "before the flush": "os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)",
    "before the rename": "os.rename = lambda *names: os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("place", KILLS)
def test_a_kill_inside_a_write_loses_that_stack_only(folder, place):
    code = "store.add([row(seed=0), row(seed=1)])\n" + KILLS[place] + "\nstore.add([row(seed=2)])"
    run_killed(code, folder)
    assert len(list(folder.iterdir())) == 2  # a part, and a temporary file that readers ignore
    assert seeds_in(folder) == [0, 1]
    Store(folder).add([row(seed=2)])
    assert seeds_in(folder) == [0, 1, 2]


def test_a_kill_after_the_rename_loses_nothing(folder):
    code = """
rows._sync_folder = lambda folder: os.kill(os.getpid(), signal.SIGKILL)
store.add([row(seed=0)])
"""
    run_killed(code, folder)
    assert seeds_in(folder) == [0]


def test_without_the_rename_a_kill_leaves_a_broken_part(folder):
    """What the temporary name is for: written in place, half a part would be read."""
    code = (
        KILLS["inside the file"]
        + """
import pathlib
opened = pathlib.Path.open
def in_place(path, *mode):
    return opened(path.with_name(path.name.strip(".").replace("tmp", "parquet")), *mode)
pathlib.Path.open = in_place
store.add([row(seed=0)])
"""
    )
    run_killed(code, folder)
    with pytest.warns(StoreWarning, match="cannot be read"):
        assert seeds_in(folder) == []


def test_kills_at_random_moments_with_restarts_lose_and_double_nothing(folder):
    """A process that does what is missing, killed five times from outside, then left alone."""
    code = """
done = {r.spec.seed for r in store.rows()}
for seed in range(int(sys.argv[2])):
    if seed not in done:
        store.add([row(seed=seed)])
        print(seed, flush=True)
"""
    rng = np.random.default_rng(0)
    reported = Counter()
    for _ in range(5):
        process = start(code, folder, 10**9)
        lines = [process.stdout.readline() for _ in range(rng.integers(1, 40))]
        process.send_signal(signal.SIGKILL)
        lines += process.communicate(timeout=60)[0].splitlines()
        reported.update(int(line) for line in lines if line.strip())
    assert set(reported.values()) == {1}  # what was reported is not done again
    found = seeds_in(folder)
    assert set(reported) <= set(found)
    assert found == list(range(len(found)))  # at most the unreported last one of each turn is more
    assert len(found) <= len(reported) + 5


def test_several_writers_at_once_lose_and_double_nothing(folder):
    """Three write 30 rows each: ten of their own, twenty that all of them write."""
    code = """
print("ready", flush=True)
input()
for seed in range(20):
    store.add([row(seed=seed)])
    if seed % 2:
        store.add([row(seed=1000 * int(sys.argv[2]) + seed)])
"""
    processes = [start(code, folder, number) for number in (1, 2, 3)]
    assert all(process.stdout.readline() == "ready\n" for process in processes)
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert len(parts_in(folder)) == 90
    own = [1000 * number + seed for number in (1, 2, 3) for seed in range(1, 20, 2)]
    assert seeds_in(folder) == sorted([*range(20), *own])


@pytest.mark.parametrize("damage", ["cut", "changed", "something else"])
def test_a_damaged_part_is_left_out_and_said(folder, damage):
    for seed in range(3):
        Store(folder).add([row(seed=seed)])
    part = parts_in(folder)[1]
    raw = bytearray(part.read_bytes())
    raw[50] ^= 255  # inside the first page
    cut = bytes(raw[: len(raw) // 2])
    part.write_bytes({"cut": cut, "changed": bytes(raw), "something else": b"text"}[damage])
    with pytest.warns(StoreWarning, match=f"{part.name} cannot be read"):
        assert seeds_in(folder) == [0, 2]


def test_a_file_is_not_a_store(folder):
    folder.write_text("rows")
    with pytest.raises(StoreError, match="a folder of rows"):
        Store(folder)


def test_folders_merge_without_repeating_rows(tmp_path, folder):
    other = tmp_path / "elsewhere"
    for seed in (1, 2, 3):
        Store(other).add([row(seed=seed)])
    store = Store(folder)
    store.add([row(seed=seed) for seed in (0, 1)])
    assert store.merge(other) == 2
    assert store.merge(other) == 0
    assert seeds_in(folder) == [0, 1, 2, 3]
    assert len(parts_in(folder)) == 2  # merging gathers small parts


def test_a_folder_that_cannot_be_written_merges(tmp_path, folder):
    other = tmp_path / "elsewhere"
    Store(other).add([row(seed=4)])
    other.chmod(0o555)
    try:
        assert Store(folder).merge(other) == 1
    finally:
        other.chmod(0o755)


def test_rows_that_do_not_know_their_commit_are_told_it(tmp_path, folder):
    other = tmp_path / "other"
    known, unknown = row(seed=1), row(seed=2)
    known.outcome["commit"], unknown.outcome["commit"] = "abc", "unknown"
    Store(other).add([known, unknown])
    Store(folder).merge(other, commit="def")
    found = {r.spec.seed: r for r in read_rows(folder)}
    assert [found[seed].outcome["commit"] for seed in (1, 2)] == ["abc", "def"]
    np.testing.assert_array_equal(found[2].arrays["loss"], np.float32(unknown.arrays["loss"]))


def test_merging_nothing_is_an_error(tmp_path, folder):
    with pytest.raises(StoreError, match="no store"):
        Store(folder).merge(tmp_path / "missing")
