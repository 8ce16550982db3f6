"""Independent jobs, each done once: in this process, in several, or as Ray tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from unbag.errors import WorkerError

__all__ = ["Executor", "ProcessExecutor", "SerialExecutor", "get_executor"]

Job = Callable[[Any, Any], Any]
"""A function of what all jobs share, and of the job's own argument; importable by name."""


class Executor(ABC):
    """Where independent jobs run. Every executor gives the same results."""

    @property
    @abstractmethod
    def n_workers(self) -> int:
        """How many jobs run at once."""

    @abstractmethod
    def finished(
        self, function: Job, jobs: Sequence[Any], *, shared: Any = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number and the result of each job as it is done, every number once.

        Parameters
        ----------
        function : function
            Called as ``function(shared, job)``.
        jobs : sequence
            One argument a job.
        shared : object
            What all jobs need, such as data; sent to a worker once, and not to be changed.
        """

    def map(self, function: Job, jobs: Sequence[Any], *, shared: Any = None) -> list[Any]:
        """Results of all jobs, in their order."""
        found = dict(self.finished(function, jobs, shared=shared))
        return [found[number] for number in range(len(jobs))]


class SerialExecutor(Executor):
    """One job after the other, in this process.

    Examples
    --------
    >>> SerialExecutor().map(pow, [1, 2, 3], shared=2)
    [2, 4, 8]
    """

    n_workers = 1

    def finished(
        self, function: Job, jobs: Sequence[Any], *, shared: Any = None
    ) -> Iterator[tuple[int, Any]]:
        """Run each job when its result is asked for."""
        for number, job in enumerate(jobs):
            yield number, function(shared, job)


class ProcessExecutor(Executor):
    """Jobs in processes of this machine, by joblib.

    Parameters
    ----------
    n_jobs : int
        Processes; -1 takes as many as there are cores.
    max_retries : int
        How often jobs that were lost with a killed process are run again.
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
        """Run the jobs; joblib gives up when a process is killed, so what is left starts again."""
        from joblib.externals.loky.process_executor import BrokenProcessPool

        left = dict(enumerate(jobs))
        for _ in range(self.max_retries + 1):
            try:
                for number, result in self._run(function, left, shared):
                    del left[number]
                    yield number, result
                return
            except BrokenProcessPool as error:
                lost = error
        raise WorkerError(
            f"Processes were killed {self.max_retries + 1} times, {len(left)} of {len(jobs)} jobs "
            "are not done. Look for the cause, such as memory, or use fewer processes."
        ) from lost

    def _run(self, function: Job, left: dict[int, Any], shared: Any) -> Iterator[tuple[int, Any]]:
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered", batch_size=1)
        call = delayed(_numbered)
        yield from pool(call(function, shared, number, job) for number, job in list(left.items()))


def _numbered(function: Job, shared: Any, number: int, job: Any) -> tuple[int, Any]:
    return number, function(shared, job)


def get_executor(*, n_jobs: int = 1, ray: str | None = None, gpus_per_job: float = 0) -> Executor:
    """Choose where jobs run.

    Parameters
    ----------
    n_jobs : int
        Processes of this machine; 1 is this process.
    ray : str, optional
        "local" starts Ray on this machine; an address such as "auto" or "ray://head:10001" joins a
        cluster. Needs the extra ``unbag[ray]``.
    gpus_per_job : float
        Only with `ray`: GPUs that each job has to itself.

    Examples
    --------
    >>> get_executor()
    <unbag.parallel.executor.SerialExecutor object at ...>
    """
    if ray is not None:
        from unbag.parallel.ray_tasks import RayExecutor

        return RayExecutor(ray, gpus_per_job=gpus_per_job)
    return SerialExecutor() if n_jobs == 1 else ProcessExecutor(n_jobs)
