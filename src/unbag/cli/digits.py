"""Odd and even digits in bags: what `unbag demo` trains and compares with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from unbag.bags import Bags, make_bags
from unbag.estimators import BagRidgeClassifier
from unbag.evaluation import Estimate, estimate_risk
from unbag.rules import RULES, DebiasedSquare, Rule
from unbag.tables.record import plain
from unbag.training import Settings, Trial, train
from unbag.training.scoring import scores_of

__all__ = ["Outcome", "run_bag_size"]


@dataclass(frozen=True)
class Outcome:
    """One line of the demo's table."""

    bag_size: int
    n_held_out: int
    name: str
    estimate: Estimate
    true_error: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        estimate = {name: getattr(self.estimate, name) for name in ("value", "low", "high")}
        return {
            "bag_size": self.bag_size,
            "rule": self.name,
            "estimated_error": plain(estimate),
            "true_error": self.true_error,
        }


def run_bag_size(bag_size: int, *, seed: int, epochs: int) -> list[Outcome]:
    """Train every gradient rule in one stack, and the closed form beside them."""
    X, digit = load_digits(return_X_y=True)
    X, y = (X / 16).astype(np.float32), (digit % 2 == 0).astype(int)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
    bags = make_bags(X_train, y_train, bag_size=bag_size, seed=seed)
    held_out = make_bags(X_test, y_test, bag_size=bag_size, seed=seed + 1)
    rules = gradient_rules()
    results = train(
        [Trial(rule, 3e-3, seed) for rule in rules],
        bags,
        settings=Settings(max_epochs=epochs, redraw=True, progress=True),
    )
    scores = {label(r): scores_of(t, X_test) for r, t in zip(rules, results, strict=True)}
    scores["ridge, closed form"] = ridge_scores(bags, X_test)
    true_errors = {name: float(np.mean((s > 0.5) != (y_test == 1))) for name, s in scores.items()}
    return [
        Outcome(bag_size, held_out.n_bags, name, estimate_risk(s, held_out), true_errors[name])
        for name, s in scores.items()
    ]


def gradient_rules() -> list[Rule]:
    """Every rule with a gradient, and the debiased loss also as the paper trains it."""
    rules = [rule() for rule in RULES.values() if rule.differentiable]
    return [*rules, DebiasedSquare(debias="moving")]


def label(rule: Rule) -> str:
    """Name a reader of the table can look up."""
    if isinstance(rule, DebiasedSquare):
        return f"{rule.name}, {rule.debias}"
    return rule.name


def ridge_scores(bags: Bags, X: np.ndarray) -> np.ndarray:
    """Scores of the closed-form learner trained on the same bags."""
    ids = bags.bag_of_row
    clf = BagRidgeClassifier().fit(bags.X, bags.proportions[ids], bags=ids)
    return clf.predict_proba(X)[:, 1]
