"""Worker processes of one `torch.distributed` group, started again when one is killed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

import torch
import torch.distributed as dist

from unbag.errors import WorkerError

__all__ = ["join_group", "lone_group", "run_workers"]

# What torchrun tells a worker.
_GROUP = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Seconds that the other workers have to notice one that failed; with gloo they do at once.
_GRACE = 30.0


@contextmanager
def join_group(backend: str = "gloo") -> Iterator[None]:
    """Make this process a worker of the group its environment describes, and leave it at the end.

    For scripts started by ``torchrun``. Where a group exists already, as under Ray Train, it is
    used and left alone.

    Parameters
    ----------
    backend : str
        "gloo" on CPUs, "nccl" on GPUs.

    Notes
    -----
    A restarted group would find the keys of the one before it in torchrun's store and wait for
    ever, so keys are prefixed by the number of the restart.
    """
    if dist.is_initialized():
        yield
        return
    if missing := [name for name in _GROUP if name not in os.environ]:
        raise WorkerError(
            f"This process is in no group of workers: {', '.join(missing)} not set. Start the "
            "script with torchrun, or call `on_processes` or `on_ray`, which make a group."
        )
    rank, n_workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    hosted = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(*address, n_workers, is_master=rank == 0 and not hosted)
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    with _group(store, f"restart-{restart}", rank, n_workers, backend):
        yield


@contextmanager
def _group(store: Any, prefix: str, rank: int, n_workers: int, backend: str) -> Iterator[None]:
    own = dist.PrefixStore(prefix, store)
    if backend == "nccl":  # a GPU for each worker of a machine
        local_rank = int(os.environ.get("LOCAL_RANK", rank))
        torch.cuda.set_device(local_rank % torch.cuda.device_count())
    dist.init_process_group(backend, store=own, rank=rank, world_size=n_workers)
    try:
        yield
    finally:
        dist.destroy_process_group()


def lone_group() -> AbstractContextManager[None]:
    """Make this process a group of its own."""
    return _group(dist.HashStore(), "alone", 0, 1, "gloo")


def run_workers(
    function: Callable[..., Any],
    *arguments: Any,
    n_workers: int,
    max_restarts: int = 3,
    backend: str = "gloo",
) -> Any:
    """Run a function in several processes of this machine that form a group.

    Parameters
    ----------
    function : function
        Called on every worker; importable by name, as worker processes are fresh interpreters.
    *arguments
        Its arguments, the same on every worker.
    n_workers : int
    max_restarts : int
        When a worker is killed the others cannot go on, so all are started again, at most this
        often. A function that saves its state goes on from there.
    backend : str

    Returns
    -------
    object
        What the function returned on the first worker.

    Raises
    ------
    WorkerError
        If the function raised, or workers were killed too often.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for attempt in range(max_restarts + 1):
        task = (function, arguments, store.port, f"attempt-{attempt}", n_workers, backend)
        outcome, killed = _attempt(task, n_workers)
        if not killed:
            return outcome
    raise WorkerError(
        f"Workers were killed in every attempt ({max_restarts + 1} made), the last time {killed}. "
        "Look for the cause, such as memory, or raise `max_restarts`."
    )


def _attempt(task: Sequence[Any], n_workers: int) -> tuple[Any, str]:
    """Start all workers and wait for them; the first one's value, or who was killed."""
    context = multiprocessing.get_context("spawn")
    processes, ends = [], []
    try:
        for rank in range(n_workers):
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(rank, sending, *task), daemon=True)
            process.start()
            sending.close()
            processes.append(process)
            ends.append(receiving)
        return _collect(processes, ends)
    finally:
        for process in processes:
            process.kill()
            process.join()


def _collect(processes: list[SpawnProcess], ends: list[Connection]) -> tuple[Any, str]:
    """Wait for every worker's message, or for one that ends without any: it was killed.

    The survivors of a killed worker fail too and may be heard first, so a failure is believed only
    when all others have spoken, or kept silent for long: those wait for the dead.
    """
    values: dict[int, bytes] = {}
    failures: list[str] = []
    silent: dict[Any, int] = dict(zip(ends, range(len(ends)), strict=True))
    while silent and (ready := wait(list(silent), timeout=_GRACE if failures else None)):
        for end in ready:
            rank = silent.pop(end)
            try:
                value, failure = ends[rank].recv()
            except EOFError:
                processes[rank].join()
                return None, f"worker {rank} with exit code {processes[rank].exitcode}"
            values[rank] = value
            failures += [failure] if failure else []
    if failures:
        raise WorkerError("\n".join(failures))
    return pickle.loads(values[0]), ""  # noqa: S301 - bytes of our own worker


def _work(
    rank: int,
    end: Connection,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    port: int,
    prefix: str,
    n_workers: int,
    backend: str,
) -> None:
    try:
        store = dist.TCPStore("127.0.0.1", port, is_master=False)
        with _group(store, prefix, rank, n_workers, backend):
            value = function(*arguments)
            # As bytes, because torch would send tensors as shared memory that ends with the worker.
            end.send((pickle.dumps(value if rank == 0 else None), ""))
    except Exception:
        end.send((b"", f"Worker {rank} failed:\n{traceback.format_exc()}"))
