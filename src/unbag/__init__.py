"""Learn a classifier for single instances when only each bag's average label is known."""

from unbag import rules
from unbag.bags import BagBatch, BagKFold, Bags, BagTarget, make_bags, split_bags
from unbag.estimators import BagClassifier, BagRidgeClassifier

__version__ = "0.1.0"
__all__ = [
    "BagBatch",
    "BagClassifier",
    "BagKFold",
    "BagRidgeClassifier",
    "BagTarget",
    "Bags",
    "make_bags",
    "rules",
    "split_bags",
]
