"""The methods of the suite. Adding one is one entry of `METHODS`.

A method is fitted by ``fit(X, y, bags, seed)``, where `y` is the average label of each row's bag,
and gives an object with `predict_proba`. Methods that see labels get those instead. An attribute
`risk_` with `value`, `low` and `high` is what the method states about its error. Methods of kind
"learner" have a page of their own (`learners.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from learners import LEARNERS, Learner
from llp_learn_bridge import INTERPRETER, llp_learn
from peers import genbags, mixbag
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV

import unbag

Array = np.ndarray
Fit = Callable[[Array, Array, Array, int], Any]
Kind = Literal["trivial", "naive", "ours", "peer", "ceiling", "learner"]


@dataclass(frozen=True)
class Method:
    """A way to learn from bags, and what it is here for.

    `needs` is the class of the library that it is about; while that is missing the method is too.
    `interpreter` is the environment variable that names an interpreter with another package.
    """

    name: str
    kind: Kind
    about: str
    fit: Fit
    needs: str | None = None
    sees_labels: bool = False
    interpreter: str | None = None

    @property
    def available(self) -> bool:
        """Whether what it needs is there; this imports it, before the clock starts."""
        if self.interpreter is not None:
            return self.interpreter in os.environ
        return self.needs is None or hasattr(unbag, self.needs)


@dataclass(frozen=True)
class ClippedRegression:
    """A regression as a classifier: its predictions, clipped, are probabilities."""

    regression: Any

    def predict_proba(self, X: Array) -> Array:
        positive = np.clip(self.regression.predict(X), 0, 1)
        return np.stack([1 - positive, positive], axis=1)


def majority(X: Array, y: Array, bags: Array, seed: int) -> ClippedRegression:
    """The overall rate for every row."""
    return ClippedRegression(DummyRegressor().fit(X, y))


def rate_logistic(X: Array, y: Array, bags: Array, seed: int) -> LogisticRegression:
    """Every row twice, once with each label, weighted by its bag's rate."""
    labels = np.repeat([0, 1], len(X))
    weights = np.concatenate([1 - y, y])
    return LogisticRegression(max_iter=300).fit(np.concatenate([X, X]), labels, weights)


def bag_means(X: Array, y: Array, bags: Array, seed: int) -> ClippedRegression:
    """A ridge regression of rates on mean features, its penalty by leaving one bag out."""
    sizes = np.bincount(bags)
    order = np.argsort(bags, kind="stable")
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(X[order], starts) / sizes[:, None]
    ridge = RidgeCV(np.logspace(-3, 4, 15)).fit(means, y[order][starts], sizes)
    return ClippedRegression(ridge)


def bag_class(name: str, **options: Any) -> Fit:
    """A classifier of the library with these options, and a seed if it takes one."""

    def fit(X: Array, y: Array, bags: Array, seed: int) -> Any:
        estimator = getattr(unbag, name)(**options)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=seed)
        return estimator.fit(X, y, bags=bags)

    return fit


def em_around(learner: Learner) -> Fit:
    """`BagEMClassifier` around a learner."""
    return lambda X, y, bags, seed: unbag.BagEMClassifier(learner(seed), random_state=seed).fit(
        X, y, bags=bags
    )


def itself(learner: Learner) -> Fit:
    """The learner, which does not look at bags."""
    return lambda X, y, bags, seed: learner(seed).fit(X, y)


def learner_methods(name: str) -> tuple[Method, Method]:
    """A learner inside the EM, and the same learner given the labels."""
    learner = LEARNERS[name]
    return (
        Method(f"EM, {name}", "learner", f"`BagEMClassifier` around {name}", em_around(learner)),
        Method(
            f"{name}, labels", "learner", f"{name} on labels", itself(learner), sees_labels=True
        ),
    )


# The default of the library, which the page is about.
DEFAULT = "stack"
_EVERY_METHOD = (
    Method("majority", "trivial", "the overall rate for every row", majority),
    Method("rate logistic", "naive", "logistic regression on the bag's rate", rate_logistic),
    Method("bag means", "naive", "RidgeCV of rates on mean features", bag_means),
    Method(
        "stack",
        "ours",
        "`BagStackingClassifier()`",
        bag_class("BagStackingClassifier"),
        needs="BagStackingClassifier",
    ),
    Method(
        "EM", "ours", "`BagEMClassifier()`", bag_class("BagEMClassifier"), needs="BagEMClassifier"
    ),
    Method(
        "ridge",
        "ours",
        "`BagRidgeClassifier()`",
        bag_class("BagRidgeClassifier"),
        needs="BagRidgeClassifier",
    ),
    Method(
        "process",
        "ours",
        "`BagGaussianProcessClassifier()`",
        bag_class("BagGaussianProcessClassifier"),
        needs="BagGaussianProcessClassifier",
    ),
    Method("net", "ours", "`BagClassifier()`", bag_class("BagClassifier"), needs="BagClassifier"),
    Method(
        "boosting",
        "ours",
        "`BagBoostingClassifier()`",
        bag_class("BagBoostingClassifier"),
        needs="BagBoostingClassifier",
    ),
    Method(
        "boosting, counts",
        "ours",
        '`BagBoostingClassifier(rule="count_likelihood")`',
        bag_class("BagBoostingClassifier", rule="count_likelihood"),
        needs="BagBoostingClassifier",
    ),
    Method(
        "EasyLLP",
        "peer",
        "one net by EasyLLP's log loss, all epochs; not the authors' settings",
        bag_class("BagClassifier", rule="easy_log", n_nets=1, validation_share=None),
        needs="BagClassifier",
    ),
    Method(
        "DLLP",
        "peer",
        "one net by cross entropy of rates, all epochs; not the authors' settings",
        bag_class("BagClassifier", rule="proportion_log", n_nets=1, validation_share=None),
        needs="BagClassifier",
    ),
    Method("MixBag", "peer", "mixtures of two bags, written from the paper", mixbag),
    Method("GenBags", "peer", "random combinations of bags, after the paper", genbags),
    *(
        Method(
            f"llp-learn {name}",
            "peer",
            f"{name} of the package llp-learn 1.6; settings of the suite",
            llp_learn(name),
            interpreter=INTERPRETER,
        )
        for name in ("DLLP", "MixBag")
    ),
    Method(
        "labels, logistic",
        "ceiling",
        "logistic regression on labels",
        itself(LEARNERS["logistic"]),
        sees_labels=True,
    ),
    Method(
        "labels, LightGBM",
        "ceiling",
        "LightGBM on labels",
        itself(LEARNERS["LightGBM"]),
        sees_labels=True,
    ),
    *(method for name in LEARNERS for method in learner_methods(name)),
)
METHODS = {method.name: method for method in _EVERY_METHOD}


def choose_methods(names: list[str]) -> list[Method]:
    """Methods by name or kind, in the order of the registry, that the library has.

    ``all`` are those of the suite's page.
    """
    kinds = {method.kind for method in METHODS.values()}
    unknown = set(names) - {"all", *METHODS} - kinds
    if unknown:
        raise SystemExit(f"--methods {sorted(unknown)}: choose from {', '.join(METHODS)}")
    return [
        method
        for method in METHODS.values()
        if method.available
        and {method.name, method.kind, *(["all"] if method.kind != "learner" else [])} & set(names)
    ]
