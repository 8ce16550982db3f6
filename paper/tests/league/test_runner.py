"""Bags, order of runs, resuming, deadlines, choices and the page, without long trainings."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from paper.tests.support.made_up_images import made_up, run_of, tiny_net
from typer.testing import CliRunner

from unbag.models.nets import MODELS
from unbag_paper.cli import app
from unbag_paper.league.bags import divide
from unbag_paper.league.grid import GRIDS, LeagueGrid, load_grid
from unbag_paper.league.methods import METHODS
from unbag_paper.league.page import accuracy, league_page
from unbag_paper.league.rows import LeagueRow, league_rows, league_store
from unbag_paper.league.runner import LeagueRunner
from unbag_paper.league.training import Machine, OutOfTime
from unbag_paper.runs.rows import Row

SMALL = LeagueGrid(
    name="small",
    title="Made-up images",
    dataset="digits",
    net="tiny",
    methods=("dllp", "ours_start"),
    bags=("random",),
    bag_sizes=(2, 4),
    learning_rates=(0.1, 0.01),
    seeds=(0, 1),
    epochs=1,
    start_epochs=1,
    images_per_batch=60,
    check_every=1,
    seconds_per_epoch=0.01,
    published={"others": {"2": 91.5}},
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(MODELS, "tiny", tiny_net)


def shares(division, labels):
    return np.eye(3)[labels[division.train]].mean(axis=1)


def test_bags_are_disjoint_and_those_of_clusters_differ_more():
    data = made_up(n_train=400)
    spread = {}
    for kind in ("random", "clusters"):
        found = divide(data.X_train, kind, 20, held_out=0.2, seed=1, dataset="x")
        rows = np.concatenate([found.train.ravel(), found.held_out.ravel()])
        assert len(set(rows.tolist())) == 400 and len(found.held_out) == 4
        again = divide(data.X_train, kind, 20, held_out=0.2, seed=1, dataset="x")
        np.testing.assert_array_equal(found.train, again.train)
        spread[kind] = shares(found, data.y_train).std(axis=0).mean()
    assert spread["clusters"] > 1.5 * spread["random"]


def test_too_few_bags_are_refused():
    with pytest.raises(ValueError, match="at least two bags"):
        divide(np.zeros((30, 1, 2, 2)), "random", 10, held_out=0.1, seed=0, dataset="x")


def row_of(method="dllp", *, test=(0.5, 0.2, 0.3), held_out=(0.4, 0.5, 0.1), **changes):
    arrays = {"test_error": np.array(test), "held_out_error": np.array(held_out)}
    return LeagueRow(run_of(method, made_up(), **changes), {"seconds": 60.0}, arrays)


def test_each_column_has_its_own_choice():
    row = row_of()
    assert [row.chosen(by)[1] for by in ("test", "held_out", "last")] == [0.2, 0.3, 0.3]
    two = [row, row_of(learning_rate=0.01, test=(0.1, 0.6), held_out=(0.3, 0.2))]
    assert accuracy(two, "test") == "90.0 (1)"
    assert accuracy(two, "held_out") == "70.0 (1)"  # the second rate looks worse to its bags
    both = [row, row_of(seed=1, test=(0.4, 0.4), held_out=(0.1, 0.2))]
    assert accuracy(both, "test") == "70.0 ± 10.0 (2)"
    assert accuracy([], "test") == "not run"


def test_runs_without_a_finite_criterion_do_not_break_the_page():
    row = row_of(held_out=(np.nan, np.nan, np.nan))
    assert row.chosen("held_out")[1] == 0.3


def add(folder, runs, errors):
    rows = [
        Row(
            run,
            {"seconds": 1.0},
            {"test_error": np.array([e]), "held_out_error": np.array([1 - e])},
        )
        for run, e in zip(runs, errors, strict=True)
    ]
    league_store(folder).add(rows)


def test_cells_come_first_then_rates_then_seeds_of_winners(tmp_path):
    data = made_up().fingerprint
    first = SMALL.missing([], data)
    assert [run.learning_rate for run in first] == [0.1] * 4 + [0.01] * 4
    add(tmp_path, first, [0.1] * 4 + [0.2] * 4)
    left = SMALL.missing(league_rows(tmp_path), data)
    # The first rate wins by the test set, the second by held-out bags.
    assert {run.seed for run in left} == {1} and len(left) == 8
    assert SMALL.missing(league_rows(tmp_path), "other data") == first_with(first, "other data")


def first_with(runs, data):
    return [replace(run, data=data) for run in runs]


def test_a_run_is_saved_and_not_repeated(tmp_path):
    grid = SMALL.restrict(methods=["dllp"], bag_sizes=[4], learning_rates=[0.1], seeds=[0])
    runner = LeagueRunner(grid, tmp_path / "rows", made_up())
    assert runner.plan()["to_run"] == 1
    said = []
    assert runner.run(said.append) == "finished" and "dllp, random bags of 4" in said[0]
    [row] = league_rows(tmp_path / "rows")
    assert set(row.arrays) == {"epoch", "test_error", "held_out_error", "held_out_log"}
    assert row.outcome["workers"] == 1 and "commit" in row.outcome
    assert LeagueRunner(grid, tmp_path / "rows", made_up()).missing() == []


def test_nothing_begins_that_cannot_end_in_time(tmp_path):
    machine = Machine(deadline=time.monotonic() - 1)
    runner = LeagueRunner(SMALL, tmp_path, made_up(), machine)
    assert runner.run() == "out of time" and league_rows(tmp_path) == []


def test_a_run_past_the_deadline_is_given_up_and_leaves_no_row(tmp_path, monkeypatch):
    def deadline_passes(machine):
        raise OutOfTime

    monkeypatch.setattr(Machine, "check_time", deadline_passes)
    assert LeagueRunner(SMALL, tmp_path, made_up(), Machine()).run() == "out of time"
    assert league_rows(tmp_path) == []


def test_one_run_makes_the_start_that_others_wait_for(tmp_path):
    grid = SMALL.restrict(methods=["ours_start"], learning_rates=[0.1], seeds=[0])
    machine = Machine(starts=tmp_path / "starts")
    runner = LeagueRunner(grid, tmp_path / "rows", made_up(), machine, workers=4)
    assert len(runner._next(runner.missing())) == 1
    runner.workers = 1
    assert runner.run() == "finished"
    assert len(list((tmp_path / "starts").iterdir())) == 1
    several = LeagueRunner(grid, tmp_path / "none", made_up(), machine, workers=4)
    assert len(several._next(several.missing())) == 2


def test_rows_of_another_machine_are_merged(tmp_path):
    run = run_of("dllp", made_up())
    add(tmp_path / "gpu", [run], [0.1])
    result = CliRunner().invoke(
        app, ["merge", str(tmp_path / "gpu"), "--store", str(tmp_path / "rows"), "--commit", "0f"]
    )
    assert result.exit_code == 0, result.output
    [row] = league_rows(tmp_path / "rows")
    assert row.spec == run and row.outcome["commit"] == "0f"


def test_the_page_says_what_was_not_run():
    page = league_page(SMALL, [row_of(bag_size=2, epochs=1, images_per_batch=60, check_every=1)])
    assert "1 of 4 cells have a run" in page
    assert "| DLLP | test set | 80.0 (1) | not run |" in page
    assert "| DLLP | held-out bags | 70.0 (1) | not run |" in page
    assert "| others, published | - | 91.5 | - |" in page
    assert "held-out bags |" not in league_page(load_grid("goal"), [])


@pytest.mark.parametrize("name", GRIDS)
def test_declared_tables_name_known_methods_and_nets(name):
    grid = load_grid(name)
    assert set(grid.methods) <= set(METHODS) and grid.net in MODELS
    assert all(
        label.split(",")[0] in {m.label for m in METHODS.values()} for label in grid.published
    )


def test_every_method_is_in_the_table_of_peers():
    assert set(load_grid("peers").methods) == set(METHODS)


def invoke(*arguments):
    return CliRunner().invoke(app, ["images", *map(str, arguments)])


def test_the_command_plans_and_renders(tmp_path):
    store = ("--store", tmp_path / "rows")
    planned = invoke("--grid", "smoke", "--plan", "--json", *store)
    assert planned.exit_code == 0, planned.output
    assert json.loads(planned.stdout)["plan"]["to_run"] == len(METHODS)
    page = tmp_path / "page.md"
    rendered = invoke("--grid", "goal", "--render", "--out", page, *store)
    assert rendered.exit_code == 0 and "0 of 7 cells have a run" in page.read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--grid", "cup"], "grid must be one of"),
        (["--methods", "alchemy"], "methods must be among"),
    ],
)
def test_unknown_names_are_refused(options, words):
    result = invoke(*options, "--plan")
    assert result.exit_code == 1 and words in result.output


def test_a_run_needs_none_of_the_optional_packages():
    """A machine with a GPU may have torch, pyarrow, scikit-learn, typer and rich, and no more."""
    absent = ("polars", "duckdb", "ray", "lightgbm", "pooch", "matplotlib", "pandas")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r}))\n"
        "import unbag_paper.league.runner, unbag_paper.league.methods, unbag_paper.cli.images\n"
        "from unbag_paper.league.data import load_images\n"
        "print(load_images('digits').X_train.shape)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.stdout.strip() == "(1297, 1, 8, 8)", found.stderr
