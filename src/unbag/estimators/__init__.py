"""Estimators with scikit-learn's interface."""

from unbag.estimators.boosting import BagBoostingClassifier, BagBoostingRegressor
from unbag.estimators.classifier import BagClassifier
from unbag.estimators.em import BagEMClassifier
from unbag.estimators.gaussian_process import (
    BagGaussianProcessClassifier,
    BagGaussianProcessRegressor,
)
from unbag.estimators.image import BagImageClassifier
from unbag.estimators.logistic_and_poisson import BagLogisticClassifier, BagPoissonRegressor
from unbag.estimators.regressor import BagRegressor
from unbag.estimators.ridge import BagRidgeClassifier, BagRidgeRegressor
from unbag.estimators.saving import ModelFolderError
from unbag.estimators.stacking import BagStackingClassifier

__all__ = [
    "BagBoostingClassifier",
    "BagBoostingRegressor",
    "BagClassifier",
    "BagEMClassifier",
    "BagGaussianProcessClassifier",
    "BagGaussianProcessRegressor",
    "BagImageClassifier",
    "BagLogisticClassifier",
    "BagPoissonRegressor",
    "BagRegressor",
    "BagRidgeClassifier",
    "BagRidgeRegressor",
    "BagStackingClassifier",
    "ModelFolderError",
]
