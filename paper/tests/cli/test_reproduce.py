"""`unbag-paper`, from small files in the real format to a table."""

import numpy as np
import pytest
from paper.tests.support.handmade import rows_of
from paper.tests.support.small_files import write_mnist
from typer.testing import CliRunner

from unbag_paper.cli import app
from unbag_paper.runs.grid import load_grids
from unbag_paper.runs.rows import Store

PART = ["--models", "linear", "--bag-sizes", "10", "--rules", "pairwise,pm.sq", "--epochs", "2"]


@pytest.fixture
def call(tmp_path):
    write_mnist(tmp_path / "data" / "mnist", n_train=400, n_test=100)

    def invoke(*arguments, store="rows", data="data"):
        places = ["--store", str(tmp_path / store)]
        if arguments[0] != "merge":
            places += ["--data", str(tmp_path / data)]
        return CliRunner().invoke(app, [*arguments, *places])

    return invoke


def n_rows(path):
    return len(Store(path).rows())


def test_a_part_of_a_table_from_plan_to_page(call, tmp_path):
    result = call("mnist", *PART, "--seeds", "2", "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "20 trainings by the lean protocol" in result.stderr
    assert "to run now 20" in result.stderr
    assert "| 10 | Linear |" in result.stdout
    assert "(9.51)" in result.stdout
    assert n_rows(tmp_path / "rows") == 20
    assert (tmp_path / "out" / "mnist.html").is_file()


def test_a_plan_alone_trains_nothing(call, tmp_path):
    result = call("mnist", *PART, "--plan")
    assert "about" in result.stderr
    assert not (tmp_path / "rows").exists()


def test_finished_trials_are_resumed_only_on_request(call, tmp_path):
    call("mnist", *PART, "--seeds", "1")
    again = call("mnist", *PART, "--seeds", "2")
    assert again.exit_code == 1
    assert "--resume" in again.stderr
    resumed = call("mnist", *PART, "--seeds", "2", "--resume")
    assert "done 10, to run now 10" in resumed.stderr
    assert n_rows(tmp_path / "rows") == 20


def test_no_time_means_no_rows_and_no_error(call, tmp_path):
    result = call("mnist", *PART, "--minutes", "0")
    assert result.exit_code == 0
    assert "out of time" in result.stderr
    assert n_rows(tmp_path / "rows") == 0


def test_the_paper_s_bags_need_the_paper_s_data(call):
    result = call("mnist", "--exact", *PART)
    assert result.exit_code == 1
    assert "order of mnist is of 60000 instances" in result.stderr
    assert "Traceback" not in result.output


def test_rows_from_elsewhere_are_merged_and_rendered(call, tmp_path):
    call("mnist", *PART, "--seeds", "1", store="elsewhere")
    result = call("merge", str(tmp_path / "elsewhere"))
    assert "10 new rows" in result.stdout
    rendered = call("render", *PART)
    assert rendered.exit_code == 0
    assert "| 10 | Linear |" in rendered.stdout


def test_pages_of_all_rows_go_to_tables_beside_the_store(call, tmp_path):
    [grid] = load_grids("mnist")
    cell = next(grid.cells())
    store = Store(tmp_path / "rows")
    store.add(rows_of(cell, {(rate, 0): np.full(3, 0.1) for rate in cell.learning_rates}))
    before = {path.name for path in tmp_path.iterdir()}
    rendered = call("render")
    assert rendered.exit_code == 0, rendered.output
    assert {path.name for path in tmp_path.iterdir()} - before == {"tables"}
    assert (tmp_path / "tables" / "mnist.md").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mnist", "--models", "vgg"], "cnn_padded"),
        (["mnist", "--rules", "sgd"], "pairwise"),
        (["mnist", "--bag-sizes", "7"], "1000"),
        (["mnist", "--bag-sizes", "ten"], "whole numbers"),
        (["mnist", "--seeds", "0"], "--seeds"),
        (["mnist", "--epochs", "0"], "--epochs"),
        (["mnist", "--stack", "0"], "--stack"),
        (["mnist", "--side-by-side", "0"], "--side-by-side"),
        (["mnist", "--minutes", "-1"], "--minutes"),
        (["mnist", "--precision", "half"], "bfloat16"),
        (["mnist", "--device", "tpu"], "device must be one"),
        (["cifar"], "UNBAG_DATA"),
        (["figures", "--exact"], "--exact is for mnist and cifar"),
        (["merge", "missing"], "no store"),
        (["merge"], "Missing argument"),
    ],
)
def test_a_mistake_gets_one_message_and_leaves_nothing(call, tmp_path, arguments, words):
    result = call(*arguments)
    assert result.exit_code in (1, 2)
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "rows").exists()
