"""The closed-form classifier along its whole path of penalties."""

from __future__ import annotations

import numpy as np

from unbag.bags import Bags
from unbag.estimators import BagRidgeClassifier
from unbag.estimators.closed_form import RidgeSolution
from unbag_paper.runs.rows import Array
from unbag_paper.runs.trial_spec import RIDGE_POINTS

__all__ = ["PATH", "ridge_path"]

PATH = tuple(np.logspace(-6, 4, RIDGE_POINTS - 1).tolist())
"""Penalties, in the classifier's own units."""


def ridge_path(X: Array, bags: Bags, X_test: Array) -> tuple[Array, Array]:
    """Scores of test instances for every penalty, and last for the one the classifier chose.

    Parameters
    ----------
    X : array of shape (n_instances, n_features)
    bags : Bags
        Which bags the rows of `X` form.
    X_test : array of shape (n_test, n_features)

    Returns
    -------
    scores : array of shape (n_penalties + 1, n_test)
        Estimated probabilities, not yet cut to [0, 1].
    penalties : array of shape (n_penalties + 1,)
    """
    ids = bags.bag_of_row
    model = BagRidgeClassifier(penalties=PATH, standardise=False).fit(
        X, bags.proportions[ids], bags=ids
    )
    penalties = np.array([*PATH, model.penalty_])
    solution = RidgeSolution(model._statistics)  # one decomposition serves all penalties
    scores = [_scores(X_test, *solution.coefficients(penalty)) for penalty in penalties]
    return np.stack(scores), penalties


def _scores(X: Array, coefficients: Array, intercept: Array) -> Array:
    return np.asarray(X @ coefficients[:, 0] + intercept[0])
