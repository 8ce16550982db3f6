"""Exact minimisers over 1-D intervals ``1{lower <= x <= upper}``, by one sorted sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag_paper.exact.count_rules import CountRule, EasyLLP
from unbag_paper.exact.counted_bags import CountedBags, counted_bags
from unbag_paper.exact.finite import TIE_TOLERANCE
from unbag_paper.exact.thresholds import check_columns, rank_in_bag, total_terms

__all__ = ["Interval", "IntervalMinimisers", "minimise_intervals"]

Array = NDArray[Any]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Interval:
    """Predict 1 where ``lower <= x <= upper``, or elsewhere when `inside` is False."""

    lower: float
    upper: float
    inside: bool

    def predict(self, x: ArrayLike) -> Integers:
        """0/1 predictions.

        Examples
        --------
        >>> Interval(0.0, 1.0, inside=True).predict([-1, 0.5, 2]).tolist()
        [0, 1, 0]
        """
        values = np.asarray(x, dtype=float)
        within = (values >= self.lower) & (values <= self.upper)
        return (within == self.inside).astype(np.int64)


@dataclass(frozen=True)
class IntervalMinimisers:
    """Every interval with the least value, its ends at instances; (inf, -inf) is the empty one."""

    value: float
    intervals: list[Interval]

    def __len__(self) -> int:
        return len(self.intervals)

    @property
    def best(self) -> Interval:
        """The tie rule: 1 inside before 1 outside, the empty one, lowest start, lowest end."""
        return self.intervals[0]


def minimise_intervals(
    x: ArrayLike,
    proportions: ArrayLike,
    *,
    rule: CountRule,
    bags: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    symmetric: bool = False,
    combine_to: int | None = None,
) -> IntervalMinimisers:
    """Minimise a 0-1 rule exactly over intervals.

    Parameters are those of :func:`~unbag_paper.exact.thresholds.minimise_thresholds`; `symmetric`
    also allows one minus an interval.

    Notes
    -----
    EasyLLP is linear in the predictions: the best interval is a difference of prefix sums, found in
    O(N log N). The other rules couple the two ends through every bag. For them the left end passes
    the sorted instances once and all right ends are updated together: O(N) memory, O(N) vectorised
    work a step, so O(N^2) time; 10,000 instances take seconds. Ties found are all listed, which
    alone can take O(N^2).

    Examples
    --------
    >>> from unbag_paper.exact import EPRM
    >>> found = minimise_intervals([0.1, 0.5, 0.6, 0.9], [0.5, 0.5], sizes=[2, 2], rule=EPRM())
    >>> found.value, found.best
    (0.0, Interval(lower=0.5, upper=0.6, inside=True))
    """
    column = np.asarray(x, dtype=float)
    found = counted_bags(proportions, bags=bags, sizes=sizes, combine_to=combine_to)
    check_columns(column[:, None] if column.ndim == 1 else column[None], found)
    order = np.argsort(column, kind="stable")
    sorted_bags = CountedBags(found.member[order], found.sizes, found.positives)
    search = _search_linear if isinstance(rule, EasyLLP) else _search_sweep
    results = [
        (inside, *search(column[order], sorted_bags, rule, inside))
        for inside in ((True, False) if symmetric else (True,))
    ]
    value = min(least for _, least, _ in results)
    return IntervalMinimisers(value, _listed(column[order], results, value))


def _listed(
    places: Array, results: list[tuple[bool, float, dict[tuple[int, int], float]]], value: float
) -> list[Interval]:
    ceiling = _ceiling(value)
    listed = []
    for inside, _, pairs in results:
        for (start, stop), cost in sorted(pairs.items()):
            if cost > ceiling:
                continue
            ends = (np.inf, -np.inf) if start == stop else (places[start], places[stop - 1])
            listed.append(Interval(float(ends[0]), float(ends[1]), inside))
    return listed


def _ceiling(value: float) -> float:
    return value + TIE_TOLERANCE * max(1.0, abs(value)) if np.isfinite(value) else value


def _starts_and_stops(places: Array) -> tuple[Integers, Integers]:
    """Positions where an interval may start (first of equal values) and stop (after the last)."""
    edges = np.concatenate([[-np.inf], places, [np.inf]])
    distinct = np.flatnonzero(edges[1:] > edges[:-1])
    return distinct[:-1], distinct[1:]


def _empty_value(bags: CountedBags, rule: CountRule, inside: bool) -> float:
    counts = np.zeros_like(bags.sizes) if inside else bags.sizes
    return float(rule.combine(total_terms(rule, counts, bags), bags.sizes))


def _search_linear(
    places: Array, bags: CountedBags, rule: CountRule, inside: bool
) -> tuple[float, dict[tuple[int, int], float]]:
    """Best difference of prefix sums: the loss is linear in the predictions."""
    empty = _empty_value(bags, rule, inside)
    known = [part[bags.member] for part in rule.per_bag(bags.sizes, bags.positives)]
    [one] = rule.terms(np.ones(len(places)), *known)
    [none] = rule.terms(np.zeros(len(places)), *known)
    gains = rule.combine((one - none,), bags.sizes) * (1 if inside else -1)
    prefix = np.concatenate([[0.0], np.cumsum(gains)])
    starts, stops = _starts_and_stops(places)
    # Stops lie after starts of the same rank, so the running maximum sees every start before.
    falls = prefix[stops] - np.maximum.accumulate(prefix[starts])
    least = min(empty, empty + float(falls.min()))
    pairs = {(0, 0): empty}
    for number in np.flatnonzero(empty + falls <= _ceiling(least)):
        costs = empty + prefix[stops[number]] - prefix[starts[: number + 1]]
        for start in np.flatnonzero(costs <= _ceiling(least)):
            pairs[int(starts[start]), int(stops[number])] = float(costs[start])
    return least, pairs


def _search_sweep(
    places: Array, bags: CountedBags, rule: CountRule, inside: bool
) -> tuple[float, dict[tuple[int, int], float]]:
    """Move the left end over the instances, keeping the rule's sums for every right end."""
    starts, stops = _starts_and_stops(places)
    known = rule.per_bag(bags.sizes, bags.positives)
    table = _RightEnds(bags, rule, known, inside)
    least = _empty_value(bags, rule, inside)
    pairs = {(0, 0): least}
    position = 0
    for number, start in enumerate(starts):
        while position < start:
            table.drop(position)
            position += 1
        ends = stops[number:]
        values = rule.combine(tuple(total[ends] for total in table.sums), bags.sizes)
        least = min(least, float(values.min()))
        for place in np.flatnonzero(values <= _ceiling(least)):
            pairs[int(start), int(ends[place])] = float(values[place])
    return least, pairs


class _RightEnds:
    """Sums of a rule's terms for the intervals from one left end to every right end."""

    def __init__(
        self, bags: CountedBags, rule: CountRule, known: tuple[Array, ...], inside: bool
    ) -> None:
        self.bags, self.rule, self.known, self.inside = bags, rule, known, inside
        self.rank = rank_in_bag(bags.member, bags.sizes)
        by_bag = np.split(np.argsort(bags.member, kind="stable"), np.cumsum(bags.sizes)[:-1])
        self.members = by_bag
        self.sums = self._first_sums()

    def _terms(self, counts: Array, bag: Integers | int) -> tuple[Array, ...]:
        shown = counts if self.inside else self.bags.sizes[bag] - counts
        return self.rule.terms(shown, *(part[bag] for part in self.known))

    def _first_sums(self) -> list[Array]:
        """Sums for intervals from the first instance: every step adds one instance."""
        member, rank = self.bags.member, self.rank
        none = self._terms(np.zeros(self.bags.n_bags), np.arange(self.bags.n_bags))
        steps = zip(self._terms(rank + 1, member), self._terms(rank, member), strict=True)
        return [
            np.cumsum(np.concatenate([[first.sum()], new - old]))
            for first, (new, old) in zip(none, steps, strict=True)
        ]

    def drop(self, position: int) -> None:
        """Move the left end past an instance: its bag loses one for every right end beyond it."""
        bag = int(self.bags.member[position])
        later = self.members[bag][self.rank[position] :]
        counts = np.arange(1, len(later) + 1)
        lengths = np.diff(np.append(later, len(self.bags.member)))
        steps = zip(self._terms(counts - 1, bag), self._terms(counts, bag), strict=True)
        for total, (new, old) in zip(self.sums, steps, strict=True):
            total[position + 1 :] += np.repeat(new - old, lengths)
