"""The learners that a stack tries by default."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.estimators.boosting import BagBoostingClassifier
from unbag.estimators.em import BagEMClassifier
from unbag.estimators.gaussian_process import BagGaussianProcessClassifier
from unbag.estimators.logistic_and_poisson import BagLogisticClassifier
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.extras import has_module

Candidates = dict[str, Any]
# A penalty that leaves nothing but the intercept.
ONLY_PRIOR = 1e12
# With fewer bags their rates are too uninformative for a start.
MIN_BAGS_FOR_RATES = 100
# Candidates that get weight from the bags alone.
NAIVE = ("prior", "rate_logistic")


def default_candidates(
    data: Bags, *, natural: bool, quick: bool, seed: int
) -> list[tuple[str, Any]]:
    """Prior, linear models, a Gaussian process and trees, as far as the number of bags allows.

    Bags that are `natural` groups may have effects of their own.
    """
    common: dict[str, Any] = {"bag_effects": natural, "random_state": seed}
    few = data.n_bags < MIN_BAGS_FOR_RATES
    found: list[tuple[str, Any]] = [
        ("prior", BagRidgeClassifier(penalties=[ONLY_PRIOR], standardise=False)),
        ("process", BagGaussianProcessClassifier(**common)),
    ]
    if natural or not (few or quick):
        found.append(("logistic", BagLogisticClassifier(**common)))
    if natural and not quick:
        naive = LogisticRegression(max_iter=300)
        found.append(("ridge", BagRidgeClassifier(standardise=False)))
        found.append(("rate_logistic", BagEMClassifier(naive, n_rounds=0, start="rate", **common)))
    if not (few or natural or quick) and has_module("lightgbm"):
        grown = BagBoostingClassifier(
            rule="count_likelihood", n_estimators=300, n_runs=1, random_state=seed
        )
        found.append(("count_boosting", grown))
    for name, start, leaves, n_rounds in _trees(natural=natural, few=few, quick=quick):
        em = BagEMClassifier(
            start=start,  # type: ignore[arg-type]
            n_rounds=n_rounds,
            relaxation=1.0 if natural else None,
            max_leaf_nodes=leaves,
            # Folds of few or unlike bags differ much, and so do the fits.
            n_runs=2 if (natural or few) and not quick else 1,
            random_state=seed,
        )
        found.append((name, em))
    return found


def _trees(*, natural: bool, few: bool, quick: bool) -> list[tuple[str, str, int, int]]:
    """Name, start, leaves and rounds of the EM around trees.

    Small trees learn weak signals, large ones interactions. Rates of natural groups are no start
    for trees, which find the groups by their features.
    """
    if natural:
        found = [("em_process", "process", 15, 2), ("em_linear", "linear", 15, 2)]
    elif few:
        found = [("em_process", "process", 3, 1), ("em_rate_small", "rate", 2, 3)]
    elif quick:
        found = [("em_rate", "rate", 6, 1)]
    else:
        found = [("em_rate_small", "rate", 4, 5), ("em_rate", "rate", 15, 5)]
    return found[:1] if quick else found


def first_guess(names: Sequence[str]) -> Array:
    """Weights of candidates before any bag was seen, up to a factor."""
    return np.array([float(name not in NAIVE) for name in names])


def check_candidates(given: Sequence[tuple[str, Any]]) -> Candidates:
    """Names and estimators, or an error that names what is wrong."""
    pairs = list(given.items()) if isinstance(given, dict) else list(given)
    if not pairs or not all(
        isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in pairs
    ):
        raise ValueError(
            f"candidates must be pairs of a name and an estimator, got {given!r}. "
            "Write [('ridge', BagRidgeClassifier()), ...]."
        )
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError(f"candidates must have names of their own, got {[n for n, _ in pairs]}.")
    for name, estimator in named.items():
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(f"candidates must have predict_proba, which {name!r} lacks.")
        if not hasattr(estimator, "fit_bags") and "bags" not in signature(estimator.fit).parameters:
            raise ValueError(
                f"candidates must take bags, which {name!r} does not. Write "
                "BagEMClassifier(estimator) to let a classifier learn from bags."
            )
    return named


def fit_candidate(estimator: Any, data: Bags, blocks: Array | None) -> Any:
    """Fit to a `Bags`; estimators of others get arrays."""
    model = clone(estimator)
    if hasattr(model, "fit_bags"):
        by_blocks = blocks is not None and "blocks" in signature(model.fit_bags).parameters
        return model.fit_bags(data, blocks=blocks) if by_blocks else model.fit_bags(data)
    values = np.repeat(data.proportions, data.sizes, axis=0)
    given: dict[str, Any] = {"task": data.task, "noise_variance": None}
    if data.noise_variance is not None:
        given["noise_variance"] = np.repeat(data.noise_variance, data.sizes)
    known = {name: given[name] for name in given if name in signature(model.fit).parameters}
    ids = np.repeat(np.arange(data.n_bags), data.sizes)
    return model.fit(data.X[data.rows], values, bags=ids, **known)
