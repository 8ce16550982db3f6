"""Learn a classifier for single instances when only each bag's average label is known.

Names are imported when first used, so that ``import unbag`` does not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unbag import planning, rules
    from unbag.bags import BagBatch, BagKFold, Bags, BagTarget, make_bags, split_bags
    from unbag.estimators import (
        BagBoostingClassifier,
        BagBoostingRegressor,
        BagClassifier,
        BagEMClassifier,
        BagGaussianProcessClassifier,
        BagGaussianProcessRegressor,
        BagImageClassifier,
        BagLogisticClassifier,
        BagPoissonRegressor,
        BagRegressor,
        BagRidgeClassifier,
        BagRidgeRegressor,
        BagStackingClassifier,
    )
    from unbag.evaluation import (
        bag_learning_curve,
        bag_scorer,
        check_bags,
        column_importance,
        compare_models,
        cross_fit_risk,
        cross_fit_scores,
        estimate_groups,
        estimate_risk,
        evaluate,
        privacy_noise,
    )
    from unbag.frames import TableEncoder
    from unbag.planning import plan_bags
    from unbag.posterior import bag_posterior
    from unbag.tables import FitOptions, Roles, TableModel, learn_table

__version__ = "0.2.0"
_HOMES = {
    "unbag": "planning rules",
    "unbag.bags": "BagBatch BagKFold BagTarget Bags make_bags split_bags",
    "unbag.estimators": "BagBoostingClassifier BagBoostingRegressor BagClassifier BagEMClassifier "
    "BagGaussianProcessClassifier BagGaussianProcessRegressor BagImageClassifier "
    "BagLogisticClassifier BagPoissonRegressor BagRegressor BagRidgeClassifier BagRidgeRegressor "
    "BagStackingClassifier",
    "unbag.evaluation": "bag_learning_curve bag_scorer check_bags column_importance "
    "compare_models cross_fit_risk cross_fit_scores estimate_groups estimate_risk evaluate "
    "privacy_noise",
    "unbag.frames": "TableEncoder",
    "unbag.tables": "FitOptions Roles TableModel learn_table",
    "unbag.planning": "plan_bags",
    "unbag.posterior": "bag_posterior",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unbag' has no attribute {name!r}")
    home = _HOME[name]
    return import_module(f"unbag.{name}") if home == "unbag" else getattr(import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
