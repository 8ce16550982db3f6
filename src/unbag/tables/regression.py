"""Which regressor a table of averages or sums is fitted by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from unbag.bags import Bags
from unbag.errors import TableError
from unbag.estimators import BagBoostingRegressor, BagRegressor, BagRidgeRegressor
from unbag.estimators.folds import block_folds
from unbag.evaluation import Estimate
from unbag.evaluation.amounts import evaluate_amounts
from unbag.extras import has_module
from unbag.tables.options import FitOptions

__all__ = ["choose_regressor", "regressors_of"]

Array = NDArray[Any]
N_FOLDS = 4
REGRESSORS = ("ridge", "boosting", "debiased_square")


def regressors_of(options: FitOptions, n_rows: int) -> dict[str, Any]:
    """Candidates by name: those asked for, or else ridge, and trees or a net."""
    unknown = [name for name in options.models if name not in REGRESSORS]
    if unknown:
        raise TableError(
            f"model {unknown[0]!r} is for labels; amounts can be learned by {', '.join(REGRESSORS)}"
            " (a net)."
        )
    default = ("ridge", "boosting" if has_module("lightgbm") else "debiased_square")
    makers: dict[str, Any] = {
        "ridge": BagRidgeRegressor,
        "boosting": lambda: BagBoostingRegressor(random_state=options.seed),
        "debiased_square": lambda: BagRegressor(
            max_epochs=options.epochs_on(n_rows), random_state=options.seed
        ),
    }
    return {name: makers[name]() for name in options.models or default}


def choose_regressor(
    bags: Bags, options: FitOptions, blocks: Array | None
) -> tuple[Any, dict[str, Estimate]]:
    """The regressor of the least error on bags left out by folds, fitted to all; and all errors.

    Parameters
    ----------
    bags : Bags
    options : FitOptions
    blocks : array of shape (n_bags,), optional
        Block of each bag: bags of a block are left out together.
    """
    folds = block_folds(bags.n_bags, N_FOLDS, seed=options.seed, blocks=blocks)
    models = regressors_of(options, bags.n_instances)
    risks = {name: _left_out_error(model, bags, folds) for name, model in models.items()}
    best = min(risks, key=lambda name: risks[name].value)
    return models[best].fit_bags(bags), risks


def _left_out_error(model: Any, bags: Bags, folds: Array) -> Estimate:
    predictions = np.zeros(len(bags.X))
    for fold in range(folds.max() + 1):
        fitted = clone(model).fit_bags(bags.take(np.flatnonzero(folds != fold)))
        rows = bags.rows_of(np.flatnonzero(folds == fold))
        predictions[rows] = fitted.predict(bags.X[rows])
    return evaluate_amounts(predictions, bags)["mse"]
