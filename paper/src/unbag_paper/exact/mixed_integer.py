"""A 0-1 rule over linear thresholds as a mixed-integer program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack

from unbag_paper.exact.count_rules import CountDebiasedSquare, CountRule, bag_loss
from unbag_paper.exact.counted_bags import CountedBags
from unbag_paper.exact.finite import TIE_TOLERANCE

__all__ = ["Program", "Solution", "cost_tables"]

Array = NDArray[Any]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Solution:
    """One labeling, or none when the program has no solution or found none in its limits."""

    value: float
    weights: Array
    intercept: float
    labels: Integers | None
    bound: float
    optimal: bool


class Program:
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
        forbidden: list[Solution] | None = None,
    ) -> Solution:
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

    def _forbid(self, solution: Solution) -> tuple[dict[int, float], float]:
        labels = np.asarray(solution.labels)
        row = {self.first_label + j: 1.0 - 2.0 * float(label) for j, label in enumerate(labels)}
        return row, 1.0 - float(labels.sum())

    def _constraints(self, extra: list[tuple[dict[int, float], float]]) -> LinearConstraint:
        matrix = _sparse(self.rows, len(self.cost))
        if extra:
            matrix = vstack([matrix, _sparse([row for row, _ in extra], len(self.cost))])
        return LinearConstraint(matrix, np.array(self.floor + [floor for _, floor in extra]))

    def _read(self, result) -> Solution:  # type: ignore[no-untyped-def]
        d = self.X.shape[1]
        bound = getattr(result, "mip_dual_bound", None)
        bound = -np.inf if bound is None else float(bound)
        if result.x is None:
            # Only an infinite log loss makes the program infeasible; then every labeling is tied.
            infeasible = result.status == 2
            return Solution(
                np.inf, np.zeros(d), 0.0, None, np.inf if infeasible else bound, infeasible
            )
        weights, intercept = result.x[:d], float(result.x[d])
        labels = (self.X @ weights + intercept >= 0).astype(np.int64)
        counts = self.bags.counts(labels)
        value = float(
            bag_loss(self.rule, counts, sizes=self.bags.sizes, positives=self.bags.positives)
        )
        return Solution(value, weights, intercept, labels, bound, result.status == 0)


def cost_tables(rule: CountRule, bags: CountedBags) -> tuple[list[Array], Array | None]:
    """Cost of every count of every bag, and of the total count, adding up to the rule.

    Examples
    --------
    >>> from unbag_paper.exact import EPRM, counted_bags
    >>> cost_tables(EPRM(), counted_bags([0.5], sizes=[2]))
    ([array([1., 0., 1.])], None)
    """
    known = rule.per_bag(bags.sizes, bags.positives)
    tables = []
    for bag, size in enumerate(bags.sizes):
        terms = rule.terms(np.arange(size + 1), *(part[bag] for part in known))
        if isinstance(rule, CountDebiasedSquare):
            terms = (np.zeros(size + 1), terms[1])
        tables.append(rule.combine(terms, bags.sizes))
    if not isinstance(rule, CountDebiasedSquare):
        return tables, None
    centre, _ = rule.weights(bags.sizes)
    excess = np.arange(len(bags.member) + 1) - bags.positives.sum()
    return tables, centre * excess**2


def _sparse(rows: list[dict[int, float]], width: int) -> csr_array:
    columns = [column for row in rows for column in row]
    entries = [entry for row in rows for entry in row.values()]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return csr_array((entries, columns, starts), shape=(len(rows), width))
