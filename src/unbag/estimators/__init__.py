"""Thin scikit-learn classes over everything above, and what makes one from a table."""

from unbag.estimators.boosting import BagBoostingClassifier
from unbag.estimators.classifier import BagClassifier
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.estimators.saving import ModelFolderError
from unbag.estimators.table_fit import fit_table
from unbag.estimators.table_model import TableModel
from unbag.estimators.table_options import FitOptions
from unbag.estimators.table_record import learn_table

__all__ = [
    "BagBoostingClassifier",
    "BagClassifier",
    "BagRidgeClassifier",
    "FitOptions",
    "ModelFolderError",
    "TableModel",
    "fit_table",
    "learn_table",
]
