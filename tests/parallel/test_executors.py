"""Every executor: the same results, each once, whatever is killed."""

import socket
import sys
from types import SimpleNamespace

import pytest
from tests.support import jobs

from unbag import parallel
from unbag.errors import MissingExtraError, WorkerError
from unbag.parallel import ProcessExecutor, RayExecutor, SerialExecutor, get_executor


@pytest.fixture(params=["serial", "processes", "ray"])
def executor(request):
    if request.param == "ray":
        return request.getfixturevalue("ray_executor")
    return SerialExecutor() if request.param == "serial" else ProcessExecutor(2, max_retries=1)


def test_results_come_in_order(executor):
    assert executor.map(jobs.square, list(range(8)), shared=2) == [2 * n**2 for n in range(8)]


def test_an_executor_knows_how_many_jobs_run_at_once(executor):
    assert executor.n_workers == (1 if isinstance(executor, SerialExecutor) else 2)


@pytest.mark.parametrize(("gpus_per_job", "n_workers"), [(0, 8), (0.5, 6), (1, 3), (4, 1)])
def test_gpus_limit_how_many_jobs_run_at_once(monkeypatch, gpus_per_job, n_workers):
    cluster = SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0, "GPU": 3.0})
    monkeypatch.setattr(parallel, "connect", lambda address: cluster)
    assert RayExecutor(gpus_per_job=gpus_per_job).n_workers == n_workers


def test_an_error_of_a_job_is_raised(executor):
    with pytest.raises(ValueError, match="has a reason"):
        executor.map(jobs.fail, [1, 2])


@pytest.fixture(params=["processes", "ray"])
def mortal(request):
    if request.param == "ray":
        return request.getfixturevalue("ray_executor")
    return ProcessExecutor(2, max_retries=1)


def test_a_killed_worker_loses_nothing_and_nothing_counts_twice(mortal, tmp_path):
    found = list(mortal.finished(jobs.square_or_die, list(range(8)), shared=tmp_path))
    assert sorted(found) == [(n, n**2) for n in range(8)]
    assert (tmp_path / "started-3").read_text() == "xx"


def test_jobs_that_always_kill_are_given_up(mortal):
    with pytest.raises(WorkerError, match="2 times"):
        mortal.map(jobs.always_die, [1])


def test_the_choice_of_an_executor(monkeypatch):
    assert isinstance(get_executor(), SerialExecutor)
    assert isinstance(get_executor(n_jobs=2), ProcessExecutor)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"unbag\[ray\]"):
        get_executor(ray="local")


def test_an_address_where_nobody_listens_is_refused_at_once(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **options: pytest.fail("Ray would try for minutes"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(WorkerError, match="No Ray cluster answers at"):
            get_executor(ray=address)
