r"""Every average :math:`E[y \, g(x)]` from bags: how many positives there are at each score.

Any function of labels and scores that a metric needs is such an average or a smooth function of
several. `fit_positives` finds the mass of positives at each distinct score; a metric is then an
ordinary weighted formula, and its interval follows from its gradient by that mass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse, special

from unbag.arrays import Array
from unbag.bags import Bags


@dataclass(frozen=True)
class ScoreTable:
    """Binary bags as the metrics see them: distinct scores and how each bag shares them."""

    scores: Array  # distinct, increasing
    shares: Array  # of all instances at each score
    membership: Any  # shares of each bag's instances at each score, (n_bags, n_scores)
    proportions: Array
    sizes: Array
    noise: Array

    @property
    def n_bags(self) -> int:
        return len(self.sizes)

    @cached_property
    def n_instances(self) -> float:
        return float(self.sizes.sum())

    @property
    def n_slopes(self) -> int:
        """Of the control, a linear function of score and decision: few bags allow fewer."""
        return max(min(2, self.n_bags // 2 - 1), 0)

    @property
    def freedom(self) -> int:
        """Bags less the coefficients fitted to them."""
        return max(self.n_bags - self.n_slopes - 1, 1)

    @property
    def lost(self) -> float:
        """What fitting an intercept and the slopes takes from sums of squares."""
        return self.n_bags / self.freedom

    @cached_property
    def hard(self) -> Array:
        return (self.scores > 0.5).astype(float)

    def bag_mean(self, values: Array) -> Array:
        """Average a function of the score over each bag."""
        return np.asarray(self.membership @ values)

    def average(self, values: Array) -> Any:
        """Average a function of the score over all instances."""
        return self.shares @ values


def score_table(scores: Array, bags: Bags, proportions: Array, noise: Array) -> ScoreTable:
    """Collect instances of equal score; `scores` and `proportions` are of one label or class."""
    distinct, where = np.unique(scores[bags.rows], return_inverse=True)
    sizes = bags.sizes.astype(float)
    ends = np.append(bags.starts, len(bags.rows))
    each = np.repeat(1 / sizes, bags.sizes)
    shape = (bags.n_bags, len(distinct))
    membership = sparse.csr_array((each, where.reshape(-1), ends), shape=shape)
    shares = np.bincount(where.reshape(-1)) / len(bags.rows)
    return ScoreTable(distinct, shares, membership, proportions, sizes, noise)


@dataclass(frozen=True)
class Positives:
    r"""Estimated positives at each score, and their uncertainty.

    :math:`c` is the control, a linear function of score and decision that predicts the label, and
    :math:`e = y - c` the residual of an instance.
    """

    table: ScoreTable
    # Share of all instances that are positive and have this score: a consistent estimate, not
    # clipped, so that it can be negative.
    masses: Array
    control: Array  # at each score
    variance: float  # V, of an instance's residual
    residuals: Array  # of each bag
    weights: Array  # of bags in averages of products of the residual with something else; sum one
    square_weights: Array  # of bags in `variance`; sum one
    # Share given to what the residual variance, rather than the regression, says about the variance
    # that the control explains.
    mix: float

    @cached_property
    def chances(self) -> Array:
        """Working probability of a positive at each score; only spreads depend on it."""
        chances = working_chances(self.table, self.masses, self.control)
        return _with_variance(chances, self.table, self.control, self.variance)

    @cached_property
    def prior(self) -> float:
        return float(self.masses.sum())


def fit_positives(table: ScoreTable) -> Positives:
    """Find the mass of positives at each score: that of a control, and that of its residuals (D9).

    The control is the weighted regression of the proportions on score and decision. Its scale comes
    from the variance of the labels, of which it must explain what residuals do not show (D10).

    Notes
    -----
    Consistent for i.i.d. instances and any scores, calibrated or not; not unbiased for few bags,
    because the control is fitted to the same ones. Bags of one give the sample's own masses.
    """
    basis = np.stack([table.scores, table.hard], axis=1)[:, : table.n_slopes]
    variance = min(float(np.mean(table.sizes * table.proportions.var() + 1e-12)), 0.25)
    for _ in range(2 if table.noise.any() else 1):
        precision = 1 / (variance / table.sizes + table.noise)
        control, residuals = _regression(table, basis, precision)
        weights = precision / table.sizes / (precision / table.sizes).sum()
        # k z^2 has the standard deviation k / precision.
        squares = weights**2 / (weights @ weights)
        found = float(squares @ (table.sizes * (residuals**2 * table.lost - table.noise)))
        # D10. A residual of zero is treated as less than one error.
        variance = max(found, 0.1 / table.n_instances)
    control, mix = _rescaled(table, control, weights, found)
    # Labels of single instances need no correction: control and residual add up to them.
    lost = 1.0 if (table.sizes == 1).all() else table.lost
    shared = lost * weights * table.sizes * residuals
    masses = table.shares * (control - shared.sum()) + table.membership.T @ shared
    # D11. One error more than seen: few errors may be fewer by chance than there are.
    variance = max(found, 0.0) + 1 / table.n_instances
    return Positives(table, masses, control, variance, residuals, weights, squares, mix)


def _regression(table: ScoreTable, basis: Array, precision: Array) -> tuple[Array, Array]:
    shares = precision / precision.sum()
    features = table.bag_mean(basis)
    features = features - shares @ features
    targets = table.proportions - shares @ table.proportions
    root = np.sqrt(precision)
    slopes = np.linalg.lstsq(features * root[:, None], targets * root, rcond=1e-9)[0]
    spread = (basis - table.average(basis)) @ slopes
    prior = shares @ (table.proportions - table.bag_mean(spread))
    control = prior + spread
    return control, table.proportions - table.bag_mean(control)


def _rescaled(
    table: ScoreTable, control: Array, weights: Array, found: float
) -> tuple[Array, float]:
    """The control with the variance that the residuals leave it, and their share in saying so."""
    variance = max(found, 0.1 / table.n_instances)
    prior = table.average(control)
    explained = table.average((control - prior) ** 2)
    pair_noise = weights @ (variance * (1 - 1 / table.sizes) + table.sizes * table.noise)
    # D10. Fitting slopes to noise makes the control vary more than it should.
    explained = max(explained - table.n_slopes * pair_noise * (weights @ weights), 1e-12)
    mix = explained / (explained + pair_noise / 2) if pair_noise > 0 else 0.0
    missing = prior * (1 - prior) - explained - found
    stretch = float(np.clip(1 + mix * missing / (2 * explained), 0.5, 2))
    return prior + stretch * (control - prior), mix


def working_chances(table: ScoreTable, masses: Array, control: Array) -> Array:
    r"""Recalibrate the scores, :math:`q = \sigma(\alpha + \beta \, \mathrm{logit} f)`, to the bags.

    The two coefficients are those at which :math:`q` has the bags' share of positives and their
    covariance with the control (D12). Few Newton steps with a ridge suffice: the result only shapes
    variances, never an estimate.
    """
    logits = special.logit(np.clip(table.scores, 1e-6, 1 - 1e-6))
    design = np.stack([np.ones_like(logits), logits], axis=1)
    tests = np.stack([np.ones_like(control), control - table.average(control)], axis=1)
    targets = tests.T @ masses
    coefficients = np.array([0.0, 1.0])
    for _ in range(12):
        chances = special.expit(design @ coefficients)
        gap = targets - tests.T @ (table.shares * chances)
        slope = (tests * (table.shares * chances * (1 - chances))[:, None]).T @ design
        step = np.clip(_solved(slope, gap), -1, 1)
        coefficients = coefficients + step
        coefficients[1] = np.clip(coefficients[1], -10.0, 10.0)
        if np.abs(step).max() < 1e-3:
            break
    return np.clip(special.expit(design @ coefficients), 1e-4, 1 - 1e-4)


def _with_variance(chances: Array, table: ScoreTable, control: Array, variance: float) -> Array:
    r"""Chances moved towards certainty, or towards 1/2, until :math:`E(y - c)^2` is `variance`.

    That average is linear in the chances, so one step of a mixture suffices (D12).
    """

    def square(guess: Any) -> float:
        return float(table.average(guess * (1 - 2 * control) + control**2))

    found = square(chances)
    target = _certain(chances, table.shares) if found > variance else 0.5
    gap = found - square(target)
    share = np.clip((found - variance) / gap, 0, 1) if abs(gap) > 1e-12 else 0.0
    return (1 - share) * chances + share * target


def _certain(chances: Array, shares: Array) -> Array:
    """Labels of the same mean as the chances, positive where these are highest."""
    order = np.argsort(chances, kind="stable")[::-1]
    below = np.cumsum(shares[order]) - shares[order]
    labels = np.empty_like(chances)
    labels[order] = np.clip((shares @ chances - below) / shares[order], 0, 1)
    return labels


def _solved(matrix: Array, target: Array) -> Array:
    """Solve two equations; where they are all but one, leave the second unknown alone."""
    (a, b), (c, d) = matrix
    determinant = a * d - b * c
    if abs(determinant) <= 1e-9 * (abs(a * d) + abs(b * c)) + 1e-300:
        return np.array([target[0] / max(a, 1e-12), 0.0])
    return np.array([d * target[0] - b * target[1], a * target[1] - c * target[0]]) / determinant
