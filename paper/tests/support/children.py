"""Child processes that write to a store, and what is in it afterwards."""

import signal
import subprocess
import sys
from pathlib import Path

import unbag
from unbag_paper.runs.rows import Store

HERE = Path(__file__).parent

# Children take the package without its __init__, which imports torch and would take seconds.
PREAMBLE = f"""
import os, signal, sys, types
package = sys.modules["unbag"] = types.ModuleType("unbag")
package.__path__ = [{str(Path(unbag.__file__).parent)!r}]
sys.path.insert(0, {str(HERE)!r})
from handmade import row, spec
from unbag_paper.runs.rows import Store
store = Store(sys.argv[1])
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


def seeds_in(path):
    with Store(path) as store:
        return {r.spec.seed for r in store.rows()}
