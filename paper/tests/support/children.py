"""Child processes that write rows, and what is in the folder afterwards."""

import signal
import subprocess
import sys
from pathlib import Path

from unbag_paper.runs.rows import read_rows

ROOT = Path(__file__).parents[3]

PREAMBLE = f"""
import os, signal, sys
sys.path[:0] = {[str(ROOT), *sys.path]!r}
from paper.tests.support.handmade import row, spec
from unbag_paper.runs import rows
store = rows.Store(sys.argv[1])
"""


def start(code, *arguments):
    command = [sys.executable, "-c", PREAMBLE + code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_killed(code, *arguments):
    """Run code that ends by killing itself, and return what it had printed."""
    process = start(code, *arguments)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    return output.split()


def seeds_in(folder):
    """Seeds of the rows, in order; a row that was doubled would show twice."""
    return sorted(row.spec.seed for row in read_rows(folder))
