"""Exact minimisers over 1-D thresholds and decision stumps, by one sorted sweep per feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.errors import ConditionError
from unbag_paper.exact.count_rules import CountRule, Terms
from unbag_paper.exact.counted_bags import CountedBags, counted_bags
from unbag_paper.exact.finite import tied_minima

__all__ = ["Cut", "CutMinimisers", "minimise_stumps", "minimise_thresholds"]

Array = NDArray[Any]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Cut:
    """Predict 1 where ``x[feature] >= threshold``, or where it is not when `above` is False."""

    feature: int
    threshold: float
    above: bool

    def predict(self, X: ArrayLike) -> Integers:
        """0/1 predictions; a 1-D `X` is a single feature.

        Examples
        --------
        >>> Cut(0, 0.5, above=True).predict([0.1, 0.9]).tolist()
        [0, 1]
        """
        values = np.asarray(X, dtype=float)
        column = values if values.ndim == 1 else values[:, self.feature]
        return ((column >= self.threshold) == self.above).astype(np.int64)


@dataclass(frozen=True)
class CutMinimisers:
    """Every cut with the least value; cuts that label the sample alike are one.

    Parameters
    ----------
    value : float
        The least value of the rule.
    feature : array
        Feature of each tied cut.
    lower, upper : array
        All thresholds in (lower, upper] label the sample alike.
    above : array of bool
        Whether the cut predicts 1 above its threshold; False is one minus a cut.
    """

    value: float
    feature: Integers
    lower: Array
    upper: Array
    above: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def thresholds(self) -> Array:
        """Middle of each gap, or its infinite end."""
        low = np.where(np.isneginf(self.lower), self.upper, self.lower)
        high = np.where(np.isposinf(self.upper), self.lower, self.upper)
        middle = low / 2 + high / 2
        # The middle of two neighbouring floats can round down to the lower one.
        inside = np.where(middle > self.lower, middle, self.upper)
        inside = np.where(np.isneginf(self.lower), self.lower, inside)
        return np.where(np.isposinf(self.upper), self.upper, inside)

    @property
    def cuts(self) -> list[Cut]:
        """The tied cuts, in order."""
        parts = zip(self.feature, self.thresholds, self.above, strict=True)
        return [Cut(int(feature), float(place), bool(above)) for feature, place, above in parts]

    @property
    def best(self) -> Cut:
        """The tie rule: lowest feature, then 1 above before 1 below, then lowest threshold."""
        return self.cuts[0]


def minimise_thresholds(
    x: ArrayLike,
    proportions: ArrayLike,
    *,
    rule: CountRule,
    bags: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    symmetric: bool = False,
    combine_to: int | None = None,
) -> CutMinimisers:
    """Minimise a 0-1 rule exactly over thresholds ``1{x >= t}``, in O(N log N).

    Parameters
    ----------
    x : array_like of shape (instances,)
    proportions, bags, sizes, combine_to
        The bags, as in :func:`~unbag_paper.exact.counted_bags.counted_bags`.
    rule : CountRule
    symmetric : bool
        Also allow ``1{x < t}``.

    Notes
    -----
    The threshold passes the sorted instances once; each step moves one bag's count by one and
    changes the rule's sums by a term. Equal values of x are passed together.

    Examples
    --------
    >>> from unbag_paper.exact import CountDebiasedSquare
    >>> found = minimise_thresholds([0.1, 0.6, 0.4, 0.9], [0.5, 0.5], sizes=[2, 2],
    ...                             rule=CountDebiasedSquare())
    >>> found.value, found.best
    (0.0, Cut(feature=0, threshold=0.5, above=True))
    """
    column = np.asarray(x, dtype=float)
    if column.ndim != 1:
        raise ConditionError(f"`x` must have one axis, got shape {column.shape}: use stumps.")
    return minimise_stumps(
        column[:, None],
        proportions,
        rule=rule,
        bags=bags,
        sizes=sizes,
        symmetric=symmetric,
        combine_to=combine_to,
    )


def minimise_stumps(
    X: ArrayLike,
    proportions: ArrayLike,
    *,
    rule: CountRule,
    bags: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    symmetric: bool = True,
    combine_to: int | None = None,
) -> CutMinimisers:
    """Minimise a 0-1 rule exactly over decision stumps: one threshold on one feature.

    Parameters are those of :func:`minimise_thresholds`, with `X` of shape (instances, features) and
    both directions allowed unless ``symmetric=False``.

    Examples
    --------
    >>> from unbag_paper.exact import EPRM
    >>> X = [[5, 0.1], [5, 0.6], [5, 0.4], [5, 0.9]]
    >>> minimise_stumps(X, [0.5, 0.5], sizes=[2, 2], rule=EPRM()).best
    Cut(feature=1, threshold=0.5, above=True)
    """
    columns = np.asarray(X, dtype=float)
    found = counted_bags(proportions, bags=bags, sizes=sizes, combine_to=combine_to)
    check_columns(columns, found)
    pieces = [
        sweep_cuts(columns[:, feature], found, rule, above=above)
        for feature in range(columns.shape[1])
        for above in ((True, False) if symmetric else (True,))
    ]
    value, _ = tied_minima(np.array([piece.values.min() for piece in pieces]))
    return _gather(pieces, value, symmetric)


@dataclass(frozen=True)
class Sweep:
    """Value of a rule at every distinct cut of one feature in one direction."""

    values: Array
    lower: Array
    upper: Array


def sweep_cuts(x: Array, bags: CountedBags, rule: CountRule, *, above: bool) -> Sweep:
    """Pass a threshold over one feature. One minus a cut leaves out the two constants."""
    order = np.argsort(x, kind="stable")
    places = x[order]
    sums = _running_sums(bags.member[order], bags, rule, above=above)
    edges = np.concatenate([[-np.inf], places, [np.inf]])
    distinct = np.flatnonzero(edges[1:] > edges[:-1])
    if not above:
        distinct = distinct[1:-1]
    values = rule.combine(tuple(total[distinct] for total in sums), bags.sizes)
    if len(distinct) == 0:
        values = np.array([np.inf])
    return Sweep(values, edges[:-1][distinct], edges[1:][distinct])


def _running_sums(
    member: Integers, bags: CountedBags, rule: CountRule, *, above: bool
) -> tuple[Array, ...]:
    """Sums of the rule's terms after 0, 1, ..., N instances have fallen below the threshold."""
    passed = rank_in_bag(member, bags.sizes)
    size = bags.sizes[member]
    before = size - passed if above else passed
    after = before - 1 if above else before + 1
    known = rule.per_bag(bags.sizes, bags.positives)
    here = [part[member] for part in known]
    start = rule.terms(bags.sizes if above else np.zeros_like(bags.sizes), *known)
    steps = zip(rule.terms(after, *here), rule.terms(before, *here), strict=True)
    return tuple(
        np.cumsum(np.concatenate([[first.sum()], new - old]))
        for first, (new, old) in zip(start, steps, strict=True)
    )


def rank_in_bag(member: Integers, sizes: Integers) -> Integers:
    """How many earlier instances share each instance's bag.

    Examples
    --------
    >>> rank_in_bag(np.array([0, 1, 0, 0, 1]), np.array([3, 2])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(member, kind="stable")
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(member), dtype=np.int64)
    rank[order] = np.arange(len(member)) - np.repeat(starts, sizes)
    return rank


def check_columns(columns: Array, bags: CountedBags) -> None:
    """Refuse features that do not fit the bags or cannot be sorted."""
    if columns.ndim != 2 or len(columns) != len(bags.member):
        raise ConditionError(
            f"Features of shape {columns.shape} do not fit bags of {len(bags.member)} instances."
        )
    if columns.shape[1] == 0:
        raise ConditionError("The class is empty: there is no feature to cut.")
    if not np.isfinite(columns).all():
        raise ConditionError("Features must be finite: a threshold cannot pass NaN.")


def _gather(pieces: list[Sweep], value: float, symmetric: bool) -> CutMinimisers:
    """Keep the cuts within the tie tolerance of the least value, in the order of the tie rule."""
    directions = 2 if symmetric else 1
    kept = [tied_minima(np.append(piece.values, value))[1] for piece in pieces]
    kept = [places[places < len(piece.lower)] for places, piece in zip(kept, pieces, strict=True)]
    counts = [len(places) for places in kept]
    number = np.repeat(np.arange(len(pieces)), counts)
    lower = [piece.lower[places] for piece, places in zip(pieces, kept, strict=True)]
    upper = [piece.upper[places] for piece, places in zip(pieces, kept, strict=True)]
    return CutMinimisers(
        value,
        number // directions,
        np.concatenate(lower),
        np.concatenate(upper),
        number % directions == 0,
    )


def total_terms(rule: CountRule, counts: Array, bags: CountedBags) -> Terms:
    """Sums of a rule's terms over all bags."""
    known = rule.per_bag(bags.sizes, bags.positives)
    return tuple(np.asarray(term.sum(axis=-1)) for term in rule.terms(counts, *known))
