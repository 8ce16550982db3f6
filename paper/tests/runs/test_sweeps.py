"""Sweeps and cross-validation give the same anywhere."""

import sys

import numpy as np
import pytest
from paper.tests.support.small_files import write_mnist
from paper.tests.support.small_grid import small_data, small_grid, taught_rule
from typer.testing import CliRunner

from unbag import BagRidgeClassifier
from unbag.evaluation.selection import cross_fit_risk
from unbag.parallel import ProcessExecutor, SerialExecutor
from unbag_paper.cli import app as reproductions
from unbag_paper.runs.rows import Store
from unbag_paper.runs.runner import Runner


@pytest.fixture(params=["serial", "processes", "ray"])
def executor(request):
    if request.param == "ray":
        return request.getfixturevalue("ray_executor")
    return SerialExecutor() if request.param == "serial" else ProcessExecutor(2)


def rows_of(path, executor):
    """Arrays of every trial, by its key."""
    store = Store(path)
    rules = (*small_grid().rules, taught_rule())
    grid = small_grid(rules=rules, stacks={"cpu": {"linear": 6}})
    # Its stacks are known in advance, so that even rounding is the same.
    runner = Runner([grid], store, small_data(), protocol="paper", executor=executor)
    assert runner.run() == "finished"
    return {row.spec.key: row.arrays for row in store.rows()}


@pytest.fixture(scope="module")
def local_rows(tmp_path_factory):
    return rows_of(tmp_path_factory.mktemp("local") / "rows", None)


def test_a_sweep_has_the_same_rows(executor, local_rows, tmp_path):
    found = rows_of(tmp_path / "rows", executor)
    assert set(found) == set(local_rows)
    for key, arrays in found.items():
        for name, values in arrays.items():
            np.testing.assert_array_equal(values, local_rows[key][name])


def test_cross_validation_gives_the_same(executor, rng):
    X = rng.normal(size=(400, 3))
    bags = np.repeat(np.arange(40), 10)
    y = (X[:, 0] > 0).reshape(40, 10).mean(axis=1)[bags]
    found = cross_fit_risk(BagRidgeClassifier(), X, y, bags=bags, executor=executor)
    assert found == cross_fit_risk(BagRidgeClassifier(), X, y, bags=bags)


def test_a_broken_sweep_keeps_what_it_finished_and_resumes(tmp_path):
    class Broken(SerialExecutor):
        def finished(self, function, jobs, *, shared=None):
            for number, result in super().finished(function, jobs, shared=shared):
                yield number, result
                raise RuntimeError("lost")

    path = tmp_path / "rows"
    with pytest.raises(RuntimeError, match="lost"):
        rows_of(path, Broken())
    assert Store(path).rows()
    assert rows_of(path, SerialExecutor())


def reproduce(folder, *options):
    """`unbag-paper` on small files."""
    write_mnist(folder / "data" / "mnist", n_train=400, n_test=100)
    part = ["--models", "linear", "--bag-sizes", "10", "--rules", "pm.sq", "--epochs", "1"]
    places = ["--store", str(folder / "rows"), "--data", str(folder / "data"), "--seeds", "1"]
    return CliRunner().invoke(reproductions, ["mnist", *part, *places, *options])


@pytest.mark.usefixtures("ray_executor")
def test_the_command_trains_on_ray(tmp_path):
    result = reproduce(tmp_path, "--ray", "local")
    assert result.exit_code == 0, result.output
    assert len(Store(tmp_path / "rows").rows()) == 5


def test_the_command_names_the_missing_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert reproduce(tmp_path, "--ray", "local", "--plan").exit_code == 0
    result = reproduce(tmp_path, "--ray", "local")
    assert result.exit_code == 1
    assert "unbag[ray]" in result.stderr
