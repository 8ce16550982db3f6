"""Jobs of the tests: importable by fresh interpreters."""

import os
import signal
from pathlib import Path

from unbag import BagRidgeClassifier


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


class DyingRidge(BagRidgeClassifier):
    """Kills its own process at the first fit; the file `died` in the folder says that it has."""

    def __init__(self, folder=""):
        super().__init__()
        self.folder = folder

    def fit_bags(self, data):
        mark = Path(self.folder) / "died"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit_bags(data)
