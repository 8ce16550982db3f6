"""Jobs as Ray tasks, and the connection to Ray."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import Any

from unbag.errors import WorkerError
from unbag.extras import import_extra
from unbag.parallel.executor import Executor, Job

__all__ = ["RayExecutor", "connect"]


def connect(address: str) -> Any:
    """Return the `ray` module, connected to a cluster; an existing connection is kept.

    Parameters
    ----------
    address : str
        "local" starts Ray on this machine; anything else is an address that Ray understands.
    """
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
    """Fail at once where nobody listens: Ray itself would try for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()


class RayExecutor(Executor):
    """Each job a Ray task; Ray runs a task again when its worker or machine is lost.

    Parameters
    ----------
    address : str
        "local", or the address of a cluster.
    max_retries : int
        How often a lost task is run again.
    gpus_per_job : float
        GPUs that each job has to itself; Ray hides them from jobs that ask for none.
    """

    def __init__(
        self, address: str = "local", *, max_retries: int = 3, gpus_per_job: float = 0
    ) -> None:
        self.ray, self.max_retries = connect(address), max_retries
        self.gpus_per_job = gpus_per_job

    @property
    def n_workers(self) -> int:
        """How many jobs, each of one CPU and perhaps of GPUs, the cluster now has room for."""
        has = self.ray.cluster_resources()
        room = has.get("CPU", 1)
        if self.gpus_per_job:
            room = min(room, has.get("GPU", 0) / self.gpus_per_job)
        return max(1, int(room))

    def finished(
        self, function: Job, jobs: Sequence[Any], *, shared: Any = None
    ) -> Iterator[tuple[int, Any]]:
        """Submit all jobs and yield them as they are done; `shared` is stored once."""
        resources = {"max_retries": self.max_retries, "num_gpus": self.gpus_per_job}
        task = self.ray.remote(**resources)(function)
        common = self.ray.put(shared)
        numbers = {task.remote(common, job): number for number, job in enumerate(jobs)}
        try:
            while numbers:
                [done], _ = self.ray.wait(list(numbers), num_returns=1)
                yield numbers.pop(done), self._value(done)
        finally:  # after an error nobody waits for the others
            for reference in numbers:
                self.ray.cancel(reference)

    def _value(self, reference: Any) -> Any:
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.WorkerCrashedError as error:
            raise WorkerError(
                f"A Ray task was lost {self.max_retries + 1} times with its worker. Look for the "
                "cause, such as memory."
            ) from error
