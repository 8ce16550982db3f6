"""Blend networks with two ridges, with weights from cross-fitted scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.estimators.ridge import BagRidgeClassifier, BagRidgeRegressor
from unbag.estimators.stack_weights import CrossFit, bagged_weights, risk_matrix
from unbag.evaluation.amounts import evaluate_amounts
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.risk import estimate_risk
from unbag.models import LinearScores, RadialUnits
from unbag.training import TrialResult
from unbag.training.batches import as_tensor
from unbag.training.scoring import logits_of, scores_of

N_UNITS = 256
MAX_NUMBERS = 50_000_000  # of memberships: 200 MB


class ClosedForms:
    """Ridges on the features and on radial units, whose centres need no labels."""

    def __init__(self, bags: Bags, *, seed: int) -> None:
        self.bags, rows = bags, np.asarray(bags.X[bags.rows], dtype=np.float32)
        n_units = min(N_UNITS, max(1, MAX_NUMBERS // len(bags.X)))
        self.units = RadialUnits.of(rows, n_units=n_units, seed=seed).eval()
        with torch.no_grad():
            chunks = as_tensor(bags.X, torch.device("cpu")).split(5000)
            near = [self.units(chunk) for chunk in chunks]
        self.memberships = replace(bags, X=torch.cat(near).numpy())

    def of(self, positions: Array) -> list[nn.Module]:
        """Fit both to some of the bags."""
        return [
            self._ridge(self.bags.take(positions), nn.Identity()),
            self._ridge(self.memberships.take(positions), self.units, standardise=False),
        ]

    def _ridge(self, bags: Bags, units: nn.Module, **options: Any) -> nn.Module:
        kind = BagRidgeRegressor if bags.task == "amount" else BagRidgeClassifier
        ridge = kind(**options).fit_bags(bags)
        coefficients = torch.as_tensor(np.atleast_2d(ridge.coef_.T), dtype=torch.float32)
        linear = nn.Linear(*coefficients.shape[::-1])
        with torch.no_grad():
            linear.weight.copy_(coefficients)
            linear.bias.copy_(torch.as_tensor(ridge.intercept_))
        return LinearScores(units, linear, task=bags.task)


class CrossScores:
    """Cross-fitted scores of bags in folds (`parts`: their positions), and their risks."""

    def __init__(self, bags: Bags, parts: Sequence[Array]) -> None:
        self.bags, self.task = bags.take(np.concatenate(parts)), bags.task
        self.rows = [bags.X[bags.rows_of(part)] for part in parts]
        self.folds = np.repeat(np.arange(len(parts)), [len(part) for part in parts])

    def of_nets(self, results: Iterable[TrialResult]) -> Array:
        """Scores by one net per fold, with an axis of outputs."""
        return self._joined(scores_of, results)

    def of_models(self, models: Iterable[nn.Module], example: TrialResult) -> Array:
        """Scores by one model per fold, which returns scores itself."""
        return self._joined(logits_of, [replace(example, model=model) for model in models])

    def _joined(self, score: Any, results: Iterable[TrialResult]) -> Array:
        pairs = zip(results, self.rows, strict=True)
        found = np.concatenate([score(result, X, task=self.task) for result, X in pairs])
        return found.reshape(len(found), -1)

    def estimate(self, scores: Array) -> Estimate:
        """Error of single predictions, or mean squared error of amounts."""
        each = np.zeros((len(self.bags.X), scores.shape[1]))
        each[self.bags.rows] = scores
        if self.task == "amount":
            return evaluate_amounts(each[:, 0], self.bags)["mse"]
        parts = [np.flatnonzero(self.folds == fold) for fold in range(len(self.rows))]
        return estimate_risk(np.clip(each, 0, 1), self.bags, parts=parts)

    def risk(self, scores: Array) -> float:
        """Square risk."""
        return float(risk_matrix(self._fit([scores]))[0, 0])

    def best_weights(self, scores: Sequence[Array], *, seed: int) -> Array:
        """Convex weights of minimal risk, averaged over draws of the bags."""
        return bagged_weights(self._fit(scores), by="risk", seed=seed)

    def _fit(self, scores: Sequence[Array]) -> CrossFit:
        return CrossFit.of(np.stack(list(scores)), self.bags, self.folds)


def blend_weights(cross: CrossScores, scores: Sequence[Array], *, seed: int) -> Array:
    """Weights of closed-form models and, last, of nets.

    Closed-form models have equal weights unless their risks differ by a standard error. Nets need a
    gain of two standard errors, because their epoch was chosen by the same bags.
    """
    closed, n_closed = np.stack(list(scores[:-1])), len(scores) - 1
    equal = np.full(n_closed, 1 / n_closed)
    best = cross.best_weights(scores[:-1], seed=seed)
    first = shrunken(best, equal, closed, cross.bags, n_errors=1.0)
    best = cross.best_weights(scores, seed=seed)
    return shrunken(best, np.append(first, 0), np.stack(list(scores)), cross.bags, n_errors=2.0)


def shrunken(best: Array, safe: Array, scores: Array, bags: Bags, *, n_errors: float) -> Array:
    r"""Weights between safe ones and the seemingly best ones.

    With :math:`\delta` the estimated gain in risk and :math:`s` its standard error, the best have
    the share :math:`(1 - z^2 s^2 / \delta^2)_+`, where :math:`z` is `n_errors`. `scores` are
    cross-fitted, of shape (n_models, n_instances, n_outputs), bag by bag.
    """
    before, after = (np.tensordot(weights, scores, axes=1) for weights in (safe, best))
    terms = risk_terms(before, bags) - risk_terms(after, bags)
    gain, error = terms.mean(), n_errors * terms.std(ddof=1) / len(terms) ** 0.5
    certain = 1 - (error / gain) ** 2 if gain > error else 0.0
    return np.asarray(certain * best + (1 - certain) * safe)


def risk_terms(scores: Array, bags: Bags) -> Array:
    """One term per bag whose mean is the pairwise risk, up to noise that all models share."""
    sizes = bags.sizes.astype(float)[:, None]
    means = np.add.reduceat(scores.reshape(len(scores), -1), bags.starts) / sizes
    residuals = means - bags.proportions.reshape(len(sizes), -1)
    center = (sizes * residuals).sum(axis=0) / sizes.sum()
    n = len(sizes)
    spread = sizes * np.square(residuals - center) * (n / (n - 1)) * (1 - 1 / sizes.sum())
    return (spread + np.square(center)).sum(axis=1)
