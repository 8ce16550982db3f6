"""Exact minimisers over linear thresholds in small dimension, by mixed-integer programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.errors import ConditionError
from unbag_paper.exact.count_rules import CountRule
from unbag_paper.exact.counted_bags import counted_bags
from unbag_paper.exact.mixed_integer import Program, Solution
from unbag_paper.exact.thresholds import check_columns

__all__ = ["LinearMinimisers", "minimise_linear"]

Array = NDArray[Any]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class LinearMinimisers:
    """Linear thresholds ``1{X @ weights + intercept >= 0}`` with the least value found.

    Parameters
    ----------
    value : float
        Value of the rule, recomputed from the predictions.
    weights, intercepts : array of shapes (minimisers, features) and (minimisers,)
        On the scale of the features as given. A constant feature has weight 0.
    predictions : array of shape (minimisers, instances)
    bound : float
        No linear threshold of the margin has a value below it.
    optimal : bool
        Whether the solver closed the gap before its time limit.
    """

    value: float
    weights: Array
    intercepts: Array
    predictions: Integers
    bound: float
    optimal: bool

    @property
    def gap(self) -> float:
        """How far below `value` the optimum could still lie; 0 when proved optimal."""
        return max(0.0, self.value - self.bound)


def minimise_linear(
    X: ArrayLike,
    proportions: ArrayLike,
    *,
    rule: CountRule,
    bags: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    combine_to: int | None = None,
    time_limit: float = 60.0,
    node_limit: int | None = None,
    margin: float = 1e-4,
    max_minimisers: int = 1,
) -> LinearMinimisers:
    r"""Minimise a 0-1 rule exactly over linear thresholds, with the optimality gap reported.

    Parameters
    ----------
    X : array_like of shape (instances, features)
    proportions, bags, sizes, combine_to
        The bags, as in :func:`~unbag_paper.exact.counted_bags.counted_bags`.
    time_limit : float
        Seconds for the solver (HiGHS), for each solution it looks for.
    node_limit : int, optional
        Branch-and-bound nodes for the solver: a limit that gives the same answer on any machine.
    margin : float
        Every instance keeps this distance from zero: with features shifted and scaled to fill
        [-1, 1] and weights in [-1, 1], :math:`|w \cdot x + b| \ge` margin. Strict inequalities need
        some margin.
    max_minimisers : int
        Tied labelings are found one after the other, by forbidding those already found. Up to this
        many are returned; which one comes first is the solver's choice.

    Notes
    -----
    The class is closed under f -> 1 - f, so it is its own symmetrisation. Time grows exponentially
    with instances in the worst case: learning linear thresholds from bags is NP-hard.

    Examples
    --------
    >>> from unbag_paper.exact import CountDebiasedSquare
    >>> X = [[0.0, 0.0], [1.0, 0.1], [0.1, 1.0], [1.0, 1.0]]
    >>> found = minimise_linear(X, [0.5, 0.5], sizes=[2, 2], rule=CountDebiasedSquare())
    >>> found.value, found.optimal
    (0.0, True)

    References
    ----------
    saket2021learnability
    """
    columns = np.asarray(X, dtype=float)
    found = counted_bags(proportions, bags=bags, sizes=sizes, combine_to=combine_to)
    check_columns(columns, found)
    centre, scale = _centre_and_scale(columns)
    options: dict[str, float] = {"time_limit": time_limit, "mip_rel_gap": 0.0}
    options |= {} if node_limit is None else {"node_limit": node_limit}
    program = Program((columns - centre) / scale, found, rule, margin, options)
    first = program.solve()
    solutions, complete = [first], first.optimal
    while complete and len(solutions) < max_minimisers and np.isfinite(first.value):
        another = program.solve(ceiling=first.value, forbidden=solutions)
        if another.labels is None:
            break
        solutions.append(another)
    return _collect(solutions, centre, scale)


def _centre_and_scale(columns: Array) -> tuple[Array, Array]:
    """Middle and half of each column's range; that of a constant is infinite, its weight thus 0."""
    low, high = columns.min(axis=0) / 2, columns.max(axis=0) / 2
    half = high - low
    return low + high, np.where(half > np.finfo(float).tiny, half, np.inf)


def _collect(solutions: list[Solution], centre: Array, scale: Array) -> LinearMinimisers:
    first = solutions[0]
    if first.labels is None and not first.optimal:
        raise ConditionError("No linear threshold was found within the limits: raise `time_limit`.")
    if first.labels is None:
        raise ConditionError("Every linear threshold has infinite loss: all labelings are tied.")
    weights = np.array([solution.weights for solution in solutions]) / scale
    return LinearMinimisers(
        first.value,
        weights,
        np.array([solution.intercept for solution in solutions]) - weights @ centre,
        np.array([solution.labels for solution in solutions]),
        min(first.bound, first.value),
        first.optimal,
    )
