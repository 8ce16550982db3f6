"""Estimators with scikit-learn's interface."""

from unbag.estimators.boosting import BagBoostingClassifier, BagBoostingRegressor
from unbag.estimators.classifier import BagClassifier
from unbag.estimators.em import BagEMClassifier
from unbag.estimators.image import BagImageClassifier
from unbag.estimators.kernel import BagKernelClassifier
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
    "BagImageClassifier",
    "BagKernelClassifier",
    "BagLogisticClassifier",
    "BagPoissonRegressor",
    "BagRegressor",
    "BagRidgeClassifier",
    "BagRidgeRegressor",
    "BagStackingClassifier",
    "ModelFolderError",
]
