"""Benchmarks are run by hand; here they are at least imported, so that they cannot rot unseen."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_it_imports(path, monkeypatch):
    monkeypatch.syspath_prepend(path.parent)  # as where it is run
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # a dataclass looks itself up there
    spec.loader.exec_module(module)
