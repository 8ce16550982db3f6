"""MNIST and CIFAR-10 as the paper uses them: source, hash and task of each problem."""

from unbag_paper.data.problems import PROBLEMS, Labelled, Problem, load_problem
from unbag_paper.data.sources import SOURCES, Source, cache_folder

__all__ = ["PROBLEMS", "SOURCES", "Labelled", "Problem", "Source", "cache_folder", "load_problem"]
