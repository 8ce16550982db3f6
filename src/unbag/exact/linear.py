"""Exact minimisers over linear thresholds in small dimension, by mixed-integer programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack

from unbag.errors import ConditionError
from unbag.exact.counted import CountedBags, counted_bags
from unbag.exact.cuts import check_columns
from unbag.exact.finite import TIE_TOLERANCE
from unbag.exact.rules import CountRule, DebiasedSquare, bag_loss

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
        On the scale of the features as given.
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
        The bags, as in :func:`~unbag.exact.counted.counted_bags`.
    time_limit : float
        Seconds for the solver (HiGHS), for each solution it looks for.
    node_limit : int, optional
        Branch-and-bound nodes for the solver: a limit that gives the same answer on any machine.
    margin : float
        Every instance keeps this distance from zero: with features scaled to [-1, 1] and weights in
        [-1, 1], :math:`|w \cdot x + b| \ge` margin. Strict inequalities need some margin.
    max_minimisers : int
        Tied labelings are found one after the other, by forbidding those already found. Up to this
        many are returned; which one comes first is the solver's choice.

    Notes
    -----
    The class is closed under f -> 1 - f, so it is its own symmetrisation. Time grows exponentially
    with instances in the worst case: learning linear thresholds from bags is NP-hard.

    Examples
    --------
    >>> from unbag.exact import DebiasedSquare
    >>> X = [[0.0, 0.0], [1.0, 0.1], [0.1, 1.0], [1.0, 1.0]]
    >>> found = minimise_linear(X, [0.5, 0.5], sizes=[2, 2], rule=DebiasedSquare())
    >>> found.value, found.optimal
    (0.0, True)

    References
    ----------
    saket2021learnability
    """
    columns = np.asarray(X, dtype=float)
    found = counted_bags(proportions, bags=bags, sizes=sizes, combine_to=combine_to)
    check_columns(columns, found)
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    options: dict[str, float] = {"time_limit": time_limit, "mip_rel_gap": 0.0}
    options |= {} if node_limit is None else {"node_limit": node_limit}
    program = _Program(columns / scale, found, rule, margin, options)
    first = program.solve()
    solutions, complete = [first], first.optimal
    while complete and len(solutions) < max_minimisers and np.isfinite(first.value):
        another = program.solve(ceiling=first.value, forbidden=solutions)
        if another.labels is None:
            break
        solutions.append(another)
    return _collect(solutions, scale, first)


@dataclass(frozen=True)
class _Solution:
    value: float
    weights: Array
    intercept: float
    labels: Integers | None
    bound: float
    optimal: bool


class _Program:
    """The rule as a linear program over weights, labels, and what each bag's count costs.

    Every rule is a sum over bags of a function of the bag's count, plus for the debiased loss a
    function of the total count. A convex function is its own tangents; any other one is a choice of
    one value out of a table.
    """

    def __init__(
        self,
        X: Array,
        bags: CountedBags,
        rule: CountRule,
        margin: float,
        options: dict[str, float],
    ) -> None:
        self.X, self.bags, self.rule = X, bags, rule
        self.margin, self.options = margin, options
        n, d = X.shape
        self.first_label = d + 1
        reach = 2.0 * d + 1 + margin
        self.cost = [0.0] * (d + 1 + n)
        self.lower = [-1.0] * d + [-(d + 1.0)] + [0.0] * n
        self.upper = [1.0] * d + [d + 1.0] + [1.0] * n
        self.whole = [0] * (d + 1) + [1] * n
        self.rows: list[dict[int, float]] = []
        self.floor: list[float] = []
        for number, point in enumerate(X):
            self._separate(number, point, reach)
        self._add_costs()

    def _separate(self, number: int, point: Array, reach: float) -> None:
        d, label = len(point), self.first_label + number
        score = {j: float(point[j]) for j in range(d)} | {d: 1.0}
        self._at_least(score | {label: -reach}, self.margin - reach)
        self._at_least({j: -w for j, w in score.items()} | {label: reach}, self.margin)

    def _at_least(self, row: dict[int, float], floor: float) -> None:
        self.rows.append(row)
        self.floor.append(floor)

    def _add_costs(self) -> None:
        tables, total = cost_tables(self.rule, self.bags)
        for bag, table in enumerate(tables):
            members = np.flatnonzero(self.bags.member == bag)
            self._add_table(members, table)
        if total is not None:
            self._add_table(np.arange(len(self.X)), total)

    def _add_table(self, members: Integers, table: Array) -> None:
        labels = {self.first_label + int(member): 1.0 for member in members}
        finite = np.flatnonzero(np.isfinite(table))
        self._at_least(labels, float(finite[0]))
        self._at_least(dict.fromkeys(labels, -1.0), -float(finite[-1]))
        slopes = np.diff(table[finite])
        if np.all(np.diff(slopes) >= -1e-12):
            self._add_tangents(labels, finite, table[finite], slopes)
        else:
            self._add_choice(labels, finite, table[finite])

    def _add_tangents(
        self, labels: dict[int, float], counts: Integers, table: Array, slopes: Array
    ) -> None:
        cost = self._new_variable(1.0, low=float(table.min()), high=float(table.max()), whole=0)
        for count, value, slope in zip(counts, table, slopes, strict=False):
            row = {j: -float(slope) for j in labels} | {cost: 1.0}
            self._at_least(row, float(value - slope * count))

    def _add_choice(self, labels: dict[int, float], counts: Integers, table: Array) -> None:
        chosen = [self._new_variable(float(value), low=0, high=1, whole=1) for value in table]
        ones = dict.fromkeys(chosen, 1.0)
        link = {j: float(count) for j, count in zip(chosen, counts, strict=True)}
        for sign in (1.0, -1.0):
            self._at_least(dict.fromkeys(ones, sign), sign)
            row = {j: sign * weight for j, weight in link.items()}
            self._at_least(row | dict.fromkeys(labels, -sign), 0.0)

    def _new_variable(self, cost: float, *, low: float, high: float, whole: int) -> int:
        self.cost.append(cost)
        self.lower.append(low)
        self.upper.append(high)
        self.whole.append(whole)
        return len(self.cost) - 1

    def solve(
        self,
        *,
        ceiling: float | None = None,
        forbidden: list[_Solution] | None = None,
    ) -> _Solution:
        """Solve, optionally for a labeling as good as `ceiling` other than those `forbidden`."""
        extra = [self._forbid(solution) for solution in forbidden or []]
        if ceiling is not None:
            slack = TIE_TOLERANCE * max(1.0, abs(ceiling)) + 1e-7
            extra.append(({j: -c for j, c in enumerate(self.cost) if c}, -ceiling - slack))
        result = milp(
            self.cost,
            integrality=self.whole,
            bounds=Bounds(np.array(self.lower), np.array(self.upper)),
            constraints=self._constraints(extra),
            options=self.options,
        )
        return self._read(result)

    def _forbid(self, solution: _Solution) -> tuple[dict[int, float], float]:
        labels = np.asarray(solution.labels)
        row = {self.first_label + j: 1.0 - 2.0 * float(label) for j, label in enumerate(labels)}
        return row, 1.0 - float(labels.sum())

    def _constraints(self, extra: list[tuple[dict[int, float], float]]) -> LinearConstraint:
        matrix = _sparse(self.rows, len(self.cost))
        if extra:
            matrix = vstack([matrix, _sparse([row for row, _ in extra], len(self.cost))])
        return LinearConstraint(matrix, np.array(self.floor + [floor for _, floor in extra]))

    def _read(self, result) -> _Solution:  # type: ignore[no-untyped-def]
        d = self.X.shape[1]
        bound = getattr(result, "mip_dual_bound", None)
        bound = -np.inf if bound is None else float(bound)
        if result.x is None:
            # Only an infinite log loss makes the program infeasible; then every labeling is tied.
            infeasible = result.status == 2
            return _Solution(
                np.inf, np.zeros(d), 0.0, None, np.inf if infeasible else bound, infeasible
            )
        weights, intercept = result.x[:d], float(result.x[d])
        labels = (self.X @ weights + intercept >= 0).astype(np.int64)
        counts = self.bags.counts(labels)
        value = float(
            bag_loss(self.rule, counts, sizes=self.bags.sizes, positives=self.bags.positives)
        )
        return _Solution(value, weights, intercept, labels, bound, result.status == 0)


def cost_tables(rule: CountRule, bags: CountedBags) -> tuple[list[Array], Array | None]:
    """Cost of every count of every bag, and of the total count, adding up to the rule.

    Examples
    --------
    >>> from unbag.exact import EPRM
    >>> cost_tables(EPRM(), counted_bags([0.5], sizes=[2]))
    ([array([1., 0., 1.])], None)
    """
    known = rule.per_bag(bags.sizes, bags.positives)
    tables = []
    for bag, size in enumerate(bags.sizes):
        terms = rule.terms(np.arange(size + 1), *(part[bag] for part in known))
        if isinstance(rule, DebiasedSquare):
            terms = (np.zeros(size + 1), terms[1])
        tables.append(rule.combine(terms, bags.sizes))
    if not isinstance(rule, DebiasedSquare):
        return tables, None
    centre, _ = rule.weights(bags.sizes)
    excess = np.arange(len(bags.member) + 1) - bags.positives.sum()
    return tables, centre * excess**2


def _sparse(rows: list[dict[int, float]], width: int) -> csr_array:
    columns = [column for row in rows for column in row]
    entries = [entry for row in rows for entry in row.values()]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return csr_array((entries, columns, starts), shape=(len(rows), width))


def _collect(solutions: list[_Solution], scale: Array, first: _Solution) -> LinearMinimisers:
    if first.labels is None and not first.optimal:
        raise ConditionError("No linear threshold was found within the limits: raise `time_limit`.")
    if first.labels is None:
        raise ConditionError("Every linear threshold has infinite loss: all labelings are tied.")
    return LinearMinimisers(
        first.value,
        np.array([solution.weights / scale for solution in solutions]),
        np.array([solution.intercept for solution in solutions]),
        np.array([solution.labels for solution in solutions]),
        min(first.bound, first.value),
        first.optimal,
    )
