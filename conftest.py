"""Leaves out the doctests that need an extra which is not installed."""

from importlib.util import find_spec

_NEEDS = {"lightgbm": "src/unbag/estimators/boosting.py"}
collect_ignore = [path for module, path in _NEEDS.items() if find_spec(module) is None]
