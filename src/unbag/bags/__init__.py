"""Bags: reading and validating them, making, splitting and batching them."""

from unbag.bags.bags import Bags
from unbag.bags.batch import BagBatch, Task
from unbag.bags.making import as_bags, cut_batches, make_bags, split_bags
from unbag.bags.target import BagKFold, BagTarget, bags_of, refuse_without_bags, variance_of

__all__ = [
    "BagBatch",
    "BagKFold",
    "BagTarget",
    "Bags",
    "Task",
    "as_bags",
    "bags_of",
    "cut_batches",
    "make_bags",
    "refuse_without_bags",
    "split_bags",
    "variance_of",
]
