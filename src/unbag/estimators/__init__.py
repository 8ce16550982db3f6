"""Thin scikit-learn classes over everything above."""

from unbag.estimators.classifier import BagClassifier
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.estimators.saving import ModelFolderError

__all__ = ["BagClassifier", "BagRidgeClassifier", "ModelFolderError"]
