"""Named problems, each a declaration: source, hash, task."""

from unbag.datasets.problems import PROBLEMS, Labelled, Problem, load_problem
from unbag.datasets.sources import SOURCES, Source, cache_folder

__all__ = [
    "PROBLEMS",
    "SOURCES",
    "Labelled",
    "Problem",
    "Source",
    "cache_folder",
    "load_problem",
]
