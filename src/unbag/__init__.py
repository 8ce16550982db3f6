"""Learn a classifier for single instances when only each bag's average label is known.

Names are imported when first used, so that ``import unbag`` does not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unbag import exact, rules, theory
    from unbag.bags import BagBatch, BagKFold, Bags, BagTarget, make_bags, split_bags
    from unbag.estimators import (
        BagBoostingClassifier,
        BagClassifier,
        BagRidgeClassifier,
        FitOptions,
        TableModel,
        learn_table,
    )
    from unbag.evaluation import (
        bag_scorer,
        check_bags,
        check_flip,
        compare_models,
        cross_fit_risk,
        cross_fit_scores,
        estimate_risk,
        evaluate,
        privacy_noise,
        repair_flip,
        search_trials,
    )
    from unbag.tables import Roles, TableEncoder
    from unbag.theory import plan_bags

__version__ = "0.1.0"
__all__ = [
    "BagBatch",
    "BagBoostingClassifier",
    "BagClassifier",
    "BagKFold",
    "BagRidgeClassifier",
    "BagTarget",
    "Bags",
    "FitOptions",
    "Roles",
    "TableEncoder",
    "TableModel",
    "bag_scorer",
    "check_bags",
    "check_flip",
    "compare_models",
    "cross_fit_risk",
    "cross_fit_scores",
    "estimate_risk",
    "evaluate",
    "exact",
    "learn_table",
    "make_bags",
    "plan_bags",
    "privacy_noise",
    "repair_flip",
    "rules",
    "search_trials",
    "split_bags",
    "theory",
]
_HOMES = {
    "unbag": ("exact", "rules", "theory"),
    "unbag.bags": ("BagBatch", "BagKFold", "BagTarget", "Bags", "make_bags", "split_bags"),
    "unbag.estimators": (
        "BagBoostingClassifier",
        "BagClassifier",
        "BagRidgeClassifier",
        "FitOptions",
        "TableModel",
        "learn_table",
    ),
    "unbag.evaluation": (
        "bag_scorer",
        "check_bags",
        "check_flip",
        "compare_models",
        "cross_fit_risk",
        "cross_fit_scores",
        "estimate_risk",
        "evaluate",
        "privacy_noise",
        "repair_flip",
        "search_trials",
    ),
    "unbag.tables": ("Roles", "TableEncoder"),
    "unbag.theory": ("plan_bags",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unbag' has no attribute {name!r}")
    home = _HOME[name]
    return import_module(f"unbag.{name}") if home == "unbag" else getattr(import_module(home), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
