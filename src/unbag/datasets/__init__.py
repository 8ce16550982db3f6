"""Named problems, each a declaration: source, hash, task; and made-up tables of known truth."""

from unbag.datasets.grouped import GroupedTable, make_clicks, make_visits, make_voters
from unbag.datasets.problems import PROBLEMS, Labelled, Problem, load_problem
from unbag.datasets.sources import SOURCES, Source, cache_folder

__all__ = [
    "PROBLEMS",
    "SOURCES",
    "GroupedTable",
    "Labelled",
    "Problem",
    "Source",
    "cache_folder",
    "load_problem",
    "make_clicks",
    "make_visits",
    "make_voters",
]
