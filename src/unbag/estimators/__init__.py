"""Thin scikit-learn classes over everything above."""

from unbag.estimators.boosting import BagBoostingClassifier
from unbag.estimators.classifier import BagClassifier
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.estimators.saving import ModelFolderError

__all__ = ["BagBoostingClassifier", "BagClassifier", "BagRidgeClassifier", "ModelFolderError"]
