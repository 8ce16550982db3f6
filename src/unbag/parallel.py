"""Independent jobs in this process, in several processes, or as Ray tasks."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from unbag.errors import WorkerError
from unbag.extras import import_extra

Job = Callable[[Any, Any], Any]
"""A function of what all jobs share, and of the job's own argument; importable by name."""


class Executor(ABC):
    """Runs independent jobs. Every executor gives the same results."""

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """Number of parallel jobs."""

    @abstractmethod
    def finished(
        self, function: Job, jobs: Sequence[Any], *, shared: Any = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield number and result of each job ``function(shared, job)`` as it finishes, each once.

        `shared` is data for all jobs, sent to a worker once; jobs must not change it.
        """

    def map(self, function: Job, jobs: Sequence[Any], *, shared: Any = None) -> list[Any]:
        """Results of all jobs, in their order."""
        found = dict(self.finished(function, jobs, shared=shared))
        return [found[number] for number in range(len(jobs))]


class SerialExecutor(Executor):
    """Runs one job after the other in this process."""

    n_workers = 1

    def finished(
        self, function: Job, jobs: Sequence[Any], *, shared: Any = None
    ) -> Iterator[tuple[int, Any]]:
        """Run each job when its result is requested."""
        for number, job in enumerate(jobs):
            yield number, function(shared, job)


class ProcessExecutor(Executor):
    """Runs jobs in processes of this machine by joblib; -1 means one per core.

    Jobs lost with a killed process are run again up to `max_retries` times.
    """

    def __init__(self, n_jobs: int = -1, *, max_retries: int = 3) -> None:
        self.n_jobs, self.max_retries = n_jobs, max_retries

    @property
    def n_workers(self) -> int:
        """How many processes there are."""
        from joblib import effective_n_jobs

        return int(effective_n_jobs(self.n_jobs))

    def finished(
        self, function: Job, jobs: Sequence[Any], *, shared: Any = None
    ) -> Iterator[tuple[int, Any]]:
        """Run the jobs; joblib stops when a process is killed, so remaining jobs start again."""
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import BrokenProcessPool

        left, call = dict(enumerate(jobs)), delayed(_numbered)
        for _ in range(self.max_retries + 1):
            pool = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered", batch_size=1)
            try:
                calls = [call(function, shared, number, job) for number, job in left.items()]
                for number, result in pool(calls):
                    del left[number]
                    yield number, result
                return
            except BrokenProcessPool as error:
                lost = error
        raise WorkerError(
            f"Processes were killed {self.max_retries + 1} times, {len(left)} of {len(jobs)} jobs "
            "are not done. Look for the cause, such as memory, or use fewer processes."
        ) from lost


def _numbered(function: Job, shared: Any, number: int, job: Any) -> tuple[int, Any]:
    return number, function(shared, job)


class RayExecutor(Executor):
    """Runs each job as a Ray task, which Ray runs again if its worker or machine is lost.

    `gpus_per_job` GPUs are reserved for each job; Ray hides them from other jobs.
    """

    def __init__(
        self, address: str = "local", *, max_retries: int = 3, gpus_per_job: float = 0
    ) -> None:
        self.ray, self.max_retries = connect(address), max_retries
        self.gpus_per_job = gpus_per_job

    @property
    def n_workers(self) -> int:
        """Number of jobs for which the cluster has CPUs and GPUs."""
        has = self.ray.cluster_resources()
        room = has.get("CPU", 1)
        if self.gpus_per_job:
            room = min(room, has.get("GPU", 0) / self.gpus_per_job)
        return max(1, int(room))

    def finished(
        self, function: Job, jobs: Sequence[Any], *, shared: Any = None
    ) -> Iterator[tuple[int, Any]]:
        """Submit all jobs and yield them as they finish; `shared` is stored once."""
        resources = {"max_retries": self.max_retries, "num_gpus": self.gpus_per_job}
        task = self.ray.remote(**resources)(function)
        common = self.ray.put(shared)
        numbers = {task.remote(common, job): number for number, job in enumerate(jobs)}
        try:
            while numbers:
                [done], _ = self.ray.wait(list(numbers), num_returns=1)
                yield numbers.pop(done), self.ray.get(done)
        except self.ray.exceptions.WorkerCrashedError as error:
            raise WorkerError(
                f"A Ray task was lost {self.max_retries + 1} times with its worker. Look for the "
                "cause, such as memory."
            ) from error
        finally:  # after an error nobody waits for the others
            for reference in numbers:
                self.ray.cancel(reference)


def connect(address: str) -> Any:
    """Return the `ray` module, connected to a cluster ("local" starts one); keep a connection."""
    ray = import_extra("ray", extra="ray", purpose=f"--ray {address}")
    if ray.is_initialized():
        return ray
    # An address of a cluster takes no options of a new one.
    options = {"include_dashboard": False} if address == "local" else {}
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, **options)
    except OSError as error:
        raise WorkerError(f"No Ray cluster answers at {address!r}: {error}") from error
    return ray


def _knock(address: str, *, seconds: float = 10) -> None:
    """Fail at once if nothing listens; Ray itself would try for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()


def get_executor(*, n_jobs: int = 1, ray: str | None = None, gpus_per_job: float = 0) -> Executor:
    """Choose where jobs run.

    Parameters
    ----------
    n_jobs : int
        Processes of this machine; 1 means this process.
    ray : str, optional
        "local" starts Ray on this machine; an address such as "auto" or "ray://head:10001" joins a
        cluster. Needs the extra ``unbag[ray]``.
    gpus_per_job : float
        Only with `ray`: GPUs reserved for each job.
    """
    if ray is not None:
        return RayExecutor(ray, gpus_per_job=gpus_per_job)
    return SerialExecutor() if n_jobs == 1 else ProcessExecutor(n_jobs)
