"""Jobs of the tests: importable by fresh interpreters."""

import os
import signal
from pathlib import Path


def square(shared, job):
    return shared * job**2


def square_or_die(folder, job):
    """Job 3 kills its process the first time; every start is noted."""
    starts = Path(folder) / f"started-{job}"
    first = not starts.exists()
    with starts.open("a") as file:
        file.write("x")
    if job == 3 and first:
        os.kill(os.getpid(), signal.SIGKILL)
    return job**2


def always_die(shared, job):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(shared, job):
    raise ValueError(f"job {job} has a reason")
