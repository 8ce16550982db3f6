"""The runner finishes what is missing, and nothing else, whatever happens to it."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from paper.tests.support.small_grid import small_data, small_grid

from unbag.bags import make_bags
from unbag.estimators import BagRidgeClassifier
from unbag.parallel import SerialExecutor
from unbag_paper.runs.grid import RuleEntry
from unbag_paper.runs.ridge_path import PATH, ridge_path
from unbag_paper.runs.rows import Store
from unbag_paper.runs.runner import Runner

DATA = small_data()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "rows")


def run(store, grid=None, **options):
    runner = Runner([grid or small_grid()], store, DATA, **options)
    return runner.run(), runner


def test_lean_ends_with_the_trials_it_planned(store):
    ended, runner = run(store, label_free=False)
    assert ended == "finished"
    assert len(store.rows()) == 2 * (2 * 2 + 1)
    assert runner.missing() == []
    for row in store.rows():
        assert set(row.arrays) == {
            "loss",
            "test_error",
            "second_half_error",
            "held_out_error",
            "held_out_square",
            "error_from_bags",
        }
        assert len(row.arrays["test_error"]) == 2
        assert {"seconds", "commit", "device", "versions", "finished"} <= set(row.outcome)


def test_progress_moves_every_epoch_and_adds_up(store):
    ticks = []
    runner = Runner([small_grid(epochs=5)], store, DATA, protocol="paper")
    first = runner.costs.stack([trial for trial in runner.missing() if trial.seed == 0])
    runner.run(lambda seconds, text: ticks.append((seconds, text)))
    # The second stack is judged by what the first one took.
    assert sum(seconds for seconds, _ in ticks[:6]) == pytest.approx(first)
    assert len(ticks) == 3 * (5 + 1)  # a stack for each seed
    assert sum(bool(text) for _, text in ticks) == 3


def test_a_second_run_trains_nothing(store):
    run(store)
    before = [row.outcome["finished"] for row in store.rows()]
    runner = Runner([small_grid()], store, DATA)
    runner._trainer = None  # would fail if it were called
    assert runner.run() == "finished"
    assert [row.outcome["finished"] for row in store.rows()] == before


def test_rows_of_other_data_are_not_done(store):
    _, runner = run(store)
    n_rows = len(store.rows())
    assert runner.plan().n_done == n_rows
    digits = DATA["digits"]
    others = {"digits": replace(digits, X_train=digits.X_train[:600], y_train=digits.y_train[:600])}
    assert Runner([small_grid()], store, others).plan().n_done == 0


def test_only_seeds_that_were_asked_for_are_done(store):
    run(store)
    few = Runner([small_grid().restrict(n_seeds=1)], store, DATA).plan().n_done
    assert few == sum(row.spec.seed == 0 for row in store.rows()) < len(store.rows())


def test_a_trial_gives_the_same_numbers_in_any_stack(tmp_path):
    found = []
    for size in (1, 10):
        store = Store(tmp_path / f"{size}")
        run(store, small_grid(stacks={"cpu": {"linear": size}}), protocol="paper")
        found.append({row.spec: row.arrays for row in store.rows()})
    alone, stacked = found
    assert alone.keys() == stacked.keys()
    for spec, arrays in alone.items():
        np.testing.assert_allclose(stacked[spec]["test_error"], arrays["test_error"], atol=0.005)
        np.testing.assert_allclose(stacked[spec]["loss"], arrays["loss"], rtol=1e-3)


def test_it_learns(store):
    run(store, small_grid(epochs=30), protocol="paper")
    assert min(row.arrays["test_error"].min() for row in store.rows()) < 0.2


def test_a_stack_that_cannot_finish_in_time_is_not_begun(store):
    ended, runner = run(store, deadline=time.monotonic() + 0.01)
    assert ended == "out of time"
    assert store.rows() == []
    runner.deadline = None
    assert runner.run() == "finished"


def test_a_stack_is_cut_to_the_time_that_is_left(store):
    runner = Runner([small_grid()], store, DATA)
    stack = runner.missing()[:8]
    runner.costs.stack = lambda specs: 1e6 * len(specs)
    runner.deadline = time.monotonic() + 3e6
    assert len(runner._cut_to_time(stack)) == 2


class Noted(SerialExecutor):
    """Says that it has so many workers, and notes how many jobs it gets at once."""

    def __init__(self, n_workers):
        self.n_workers, self.rounds = n_workers, []

    def finished(self, function, jobs, *, shared=None):
        self.rounds.append(len(jobs))
        yield from super().finished(function, jobs, shared=shared)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_workers_begin_no_more_stacks_than_they_can_finish(store, n_workers):
    executor, alone = Noted(n_workers), small_grid(stacks={})
    runner = Runner([alone], store, DATA, protocol="paper", executor=executor)
    runner.costs.stack = lambda specs: 1e6 * len(specs)
    runner.deadline = time.monotonic() + 3e6  # two stacks in a row, with the margin
    assert runner.run() == "finished"
    assert executor.rounds == [2 * n_workers] * (6 // n_workers)


def test_estimates_follow_what_was_measured(store):
    _, runner = run(store)
    trial = store.rows()[0].spec
    measured = [row.outcome["seconds"] for row in store.rows()]
    estimate = runner.costs.trial(trial)
    assert min(measured) - 1e-9 <= estimate <= max(measured) + 1e-9  # they may all be equal
    longer = replace(trial, epochs=10 * trial.epochs)
    assert runner.costs.trial(longer) == pytest.approx(10 * estimate)


def test_a_stack_too_large_for_memory_is_halved(store):
    runner = Runner([small_grid()], store, DATA, label_free=False)
    train, sizes = runner._trainer, []

    def limited(stack, on_epoch):
        sizes.append(len(stack))
        if len(stack) > 2:
            raise torch.cuda.OutOfMemoryError
        return train(stack, on_epoch)

    runner._trainer = limited
    assert runner.run() == "finished"
    assert len(store.rows()) == 10
    assert sizes[:3] == [4, 2, 2]


def test_a_trial_too_large_for_memory_is_an_error(store):
    def never(stack, on_epoch):
        raise torch.cuda.OutOfMemoryError

    runner = Runner([small_grid(stacks={})], store, DATA)
    runner._trainer = never
    with pytest.raises(torch.cuda.OutOfMemoryError):
        runner.run()


def test_an_interrupted_stack_saves_nothing_unfinished(store):
    runner = Runner([small_grid()], store, DATA)
    train = runner._trainer

    def cut(stack, on_epoch):  # what comes back after Ctrl-C, in whatever order
        return dict(list(train(stack).items())[1:3])

    runner._trainer = cut
    wanted = train([trial for trial in runner.missing() if trial.seed == 0])
    assert runner.run() == "interrupted"
    assert len(store.rows()) == 2
    for row in store.rows():
        np.testing.assert_array_equal(row.arrays["loss"], wanted[row.spec]["loss"])


def test_what_another_process_finished_is_not_done_again(store, tmp_path):
    runner = Runner([small_grid()], store, DATA)
    assert runner.missing()
    run(Store(tmp_path / "rows"))
    runner._trainer = None  # would fail if it were called
    assert runner.run() == "finished"


def test_a_finished_stack_is_one_part(store, tmp_path):
    run(store, protocol="paper")
    assert len(list((tmp_path / "rows").iterdir())) == 3  # a stack for each seed


def test_ridge_runs_along_its_penalties_and_ends_at_its_choice(store):
    grid = small_grid(rules=(RuleEntry("ridge", "ridge", models=("linear",)),))
    run(store, grid)
    assert [row.spec.seed for row in store.rows()] == [0, 1, 2]
    for row in store.rows():
        arrays = row.arrays
        assert arrays["test_error"].shape == arrays["penalty"].shape == (61,)
        place = np.flatnonzero(np.isclose(arrays["penalty"][:-1], arrays["penalty"][-1]))
        assert arrays["test_error"][place] == arrays["test_error"][-1]
        assert arrays["test_error"][-1] < 0.3


def test_the_end_of_the_path_is_the_classifier_itself():
    data = DATA["digits"]
    X, X_test = (x.reshape(len(x), -1) / 255 for x in (data.X_train, data.X_test))
    bags = make_bags(X, data.y_train, bag_size=10, seed=0)
    ids = bags.bag_of_row
    model = BagRidgeClassifier(penalties=PATH, standardise=False).fit(
        X, bags.proportions[ids], bags=ids
    )
    scores, penalties = ridge_path(X, bags, X_test)
    assert penalties[-1] == model.penalty_
    np.testing.assert_allclose(scores[-1], X_test @ model.coef_ + model.intercept_, atol=1e-8)
    alone = BagRidgeClassifier(penalties=PATH[7:8], standardise=False).fit(
        X, bags.proportions[ids], bags=ids
    )
    np.testing.assert_allclose(scores[7], X_test @ alone.coef_ + alone.intercept_, atol=1e-8)


def test_figure_2_rows_hold_estimates_and_a_snapshot(store):
    grid = small_grid(measures="estimates", seeds=(0,), learning_rates=(0.01,), epochs=3)
    run(store, grid)
    for row in store.rows():
        assert row.arrays["true_square"].shape == (3,)
        assert row.arrays["bag pairwise"].shape == (50,)


def test_a_full_batch_is_one_step_an_epoch(store):
    grid = small_grid(full_batch=True, seeds=(0,), learning_rates=(0.01,))
    assert {cell.spec.bags_per_batch for cell in grid.cells()} == {0}
    assert run(store, grid)[0] == "finished"


KILLED = """
import sys
sys.path[:0] = sys.argv[2].split(":")
from paper.tests.support.small_grid import small_data, small_grid
from unbag_paper.runs.runner import Runner
from unbag_paper.runs.rows import Store

finished = 0

def wait_inside_the_fourth_trial(seconds, text):
    global finished
    finished += bool(text)
    if finished == 3 and not text:
        print("inside", flush=True)
        sys.stdin.read()

grid = small_grid(stacks={"cpu": {"linear": 1}}, epochs=20)
runner = Runner([grid], Store(sys.argv[1]), small_data(), protocol="paper")
runner.run(wait_inside_the_fourth_trial)
"""


def test_a_killed_run_resumes_where_it_was(tmp_path):
    path = tmp_path / "rows"
    arguments = [str(path), ":".join([str(Path(__file__).parents[3]), *sys.path])]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "inside\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    store = Store(path)
    before = {row.spec: row.outcome for row in store.rows()}
    grid = small_grid(stacks={"cpu": {"linear": 1}}, epochs=20)
    runner = Runner([grid], store, DATA, protocol="paper")
    assert len(before) == 3
    assert len(runner.missing()) == 12 - len(before)
    assert runner.run() == "finished"
    after = {row.spec: row.outcome for row in store.rows()}
    assert len(after) == 12
    assert {spec: after[spec] for spec in before} == before
