"""Learn a classifier for single instances when only each bag's average label is known."""

from unbag import exact, rules, theory
from unbag.bags import BagBatch, BagKFold, Bags, BagTarget, make_bags, split_bags
from unbag.estimators import BagClassifier, BagRidgeClassifier
from unbag.evaluation import check_bags, compare_models, evaluate, privacy_noise
from unbag.theory import plan_bags

__version__ = "0.1.0"
__all__ = [
    "BagBatch",
    "BagClassifier",
    "BagKFold",
    "BagRidgeClassifier",
    "BagTarget",
    "Bags",
    "check_bags",
    "compare_models",
    "evaluate",
    "exact",
    "make_bags",
    "plan_bags",
    "privacy_noise",
    "rules",
    "split_bags",
    "theory",
]
