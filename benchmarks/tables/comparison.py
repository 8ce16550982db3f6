"""Compare methods cell by cell: ranks, differences with their spread, and counts of losses.

A cell is a (table, bags) pair. With three draws or more, the standard error of a difference is
that of the mean of the paired differences of the draws. With fewer, it is that of the test rows, as
if the two methods had been scored on separate ones, which is too large rather than too small. Two
methods are compared on the draws that both have. The mean of a method with fewer draws than the
default is that of the default plus their mean difference on the draws that both have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from methods import DEFAULT, METHODS

MIN_DRAWS = 3
CELL = ["table", "bags"]
Cell = tuple[str, str]
BETTER_SIGN = {"auc": 1, "brier": -1, "error": -1, "log_loss": -1}


@dataclass(frozen=True)
class Comparison:
    """Rows of the suite, without failures, and one metric."""

    rows: pd.DataFrame
    metric: str
    pairs: dict[tuple[str, str], dict[Cell, tuple[float, float]]] = field(default_factory=dict)

    @cached_property
    def values(self) -> pd.DataFrame:
        """Goodness, the larger the better, by (table, bags, draw) and method."""
        found = self.rows.pivot(index=[*CELL, "draw"], columns="method", values=self.metric)
        return BETTER_SIGN[self.metric] * found

    @cached_property
    def means(self) -> pd.DataFrame:
        """Mean goodness by (table, bags) and method, over the draws of the default."""
        plain = self.values.groupby(CELL).mean()
        if DEFAULT not in self.values:
            return plain
        default = self.values[DEFAULT]
        gaps = self.values.sub(default, axis=0).groupby(CELL).mean()
        return gaps.add(default.groupby(CELL).mean(), axis=0).fillna(plain)

    @cached_property
    def draws(self) -> pd.DataFrame:
        """Number of draws by (table, bags) and method."""
        return self.values.groupby(CELL).count()

    @cached_property
    def contest(self) -> pd.DataFrame:
        """Means of the methods that do not see labels; three draws are needed where others have."""
        names = [name for name in self.means if not METHODS[name].sees_labels]
        needed = self.draws.max(axis=1).clip(upper=MIN_DRAWS)
        return self.means.where(self.draws.ge(needed, axis=0))[names]

    @cached_property
    def first(self) -> pd.Series:
        """The best method of every cell."""
        return self.contest.idxmax(axis=1)

    @cached_property
    def test_variance(self) -> pd.DataFrame:
        """Variance of a metric by its test rows, by (table, bags) and method."""
        rows = self.rows.assign(variance=metric_variance(self.rows, self.metric))
        return rows.pivot_table(index=CELL, columns="method", values="variance")

    def difference(self, cell: Cell, one: str, other: str) -> tuple[float, float]:
        """How much better one method is than another in a cell, and its standard error."""
        if (one, other) not in self.pairs:
            self.pairs[one, other] = self.differences(one, other)
        return self.pairs[one, other][cell]

    def differences(self, one: str, other: str) -> dict[Cell, tuple[float, float]]:
        """The same for every cell; a method does not differ from itself."""
        pairs = (self.values[one] - self.values[other]).groupby(CELL).agg(["mean", "std", "count"])
        by_draws = pairs["std"] / np.sqrt(pairs["count"])
        variance = self.test_variance[one] + self.test_variance[other]
        by_test_rows = np.sqrt(variance / pairs["count"]) * (one != other)
        error = by_draws.where(pairs["count"] >= MIN_DRAWS, by_test_rows)
        return dict(zip(pairs.index, zip(pairs["mean"], error, strict=True), strict=True))

    def ran(self, cell: Cell, method: str) -> bool:
        """Whether the method has a result in the cell."""
        return method in self.means and bool(pd.notna(self.means.loc[cell, method]))

    def cells(self, method: str) -> list[Cell]:
        """Cells in which the method ran."""
        return list(self.means.index[self.means[method].notna()])

    def losses(self, method: str, *, kind: str) -> list[tuple[Cell, str]]:
        """Cells, and methods of a kind that are better there by more than one standard error."""
        rivals = [name for name in self.means if METHODS[name].kind == kind and name != method]
        return [
            (cell, rival)
            for cell in self.cells(method)
            for rival in rivals
            if exceeds(self.difference(cell, rival, method))
        ]

    def share_first(self, method: str) -> float:
        """Share of cells in which no method is better by more than one standard error."""
        cells = self.cells(method)
        near = [not exceeds(self.difference(cell, self.first[cell], method)) for cell in cells]
        return float(np.mean(near))

    def mean_rank(self, method: str) -> float:
        """Mean rank among the methods that do not see labels."""
        return float(self.contest.rank(axis=1, ascending=False)[method].mean())

    def mean_regret(self, method: str) -> float:
        """Mean difference between the best of each cell and the method."""
        return float((self.contest.max(axis=1) - self.means[method]).mean())


def exceeds(difference: tuple[float, float]) -> bool:
    """Whether a difference is positive by more than its standard error."""
    value, error = difference
    return value > error


def metric_variance(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Variance by the number of test rows: Hanley and McNeil's for the AUC.

    Error and Brier score are means of values in [0, 1], so ``m (1 - m) / n`` is a bound.
    """
    value = rows[metric]
    if metric != "auc":
        return (value * (1 - value)).clip(lower=0) / rows["n_test"]
    positive, negative = rows["n_positive"], rows["n_test"] - rows["n_positive"]
    both = value / (2 - value) - value**2, 2 * value**2 / (1 + value) - value**2
    spread = value * (1 - value) + (positive - 1) * both[0] + (negative - 1) * both[1]
    return spread / (positive * negative)


def intervals_held(rows: pd.DataFrame) -> pd.DataFrame:
    """Stated intervals of random bags, and whether they hold the error on the test rows.

    That error has a standard error of its own, so each end of the interval is moved outwards: its
    distance from the stated value and 1.96 standard errors are added in quadrature.
    """
    rows = rows[rows["stated"].notna() & (rows["bags"] != "natural")]
    noise = 1.96**2 * rows["error"] * (1 - rows["error"]) / rows["n_test"]
    below = np.sqrt((rows["stated"] - rows["low"]) ** 2 + noise)
    above = np.sqrt((rows["high"] - rows["stated"]) ** 2 + noise)
    held = (rows["stated"] - below <= rows["error"]) & (rows["error"] <= rows["stated"] + above)
    return rows.assign(held=held)
