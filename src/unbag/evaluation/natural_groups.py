"""Shares within groups of people from counts of precincts: ecological inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import stats

from unbag.arguments import check_share
from unbag.arrays import Array
from unbag.bags.reading import read_blocks
from unbag.errors import BagDataError
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.natural_linear import BoundedModel, check_reach
from unbag.evaluation.printing import Printed, TextTable

EXPLAINED = 0.8  # chosen by benchmarks/election_context.py


@dataclass(frozen=True)
class GroupShares(Printed):
    """Share of positives within each group, estimated from counts of bags.

    Attributes
    ----------
    estimates : dict of Estimate
        By group. They lie within the bounds. Without an interval if the counts contradict the
        assumption.
    bounds : dict of tuple
        By group: least and greatest share with these counts, whatever is assumed.
    goodman : dict of float
        By group: coefficients of the regression of rates on compositions, weighted by bag size.
        Nothing keeps them within 0 and 1.
    context : float
    from_spread : bool
        Whether the context is that of the spread of bags.
    n_bags : int
    """

    estimates: dict[Any, Estimate]
    bounds: dict[Any, tuple[float, float]]
    goodman: dict[Any, float]
    context: float
    from_spread: bool
    n_bags: int
    _model: _Counts = field(repr=False)

    def __getitem__(self, group: Any) -> Estimate:
        if group not in self.estimates:
            raise KeyError(f"no group {group!r}; there are {', '.join(map(str, self.estimates))}")
        return self.estimates[group]

    @property
    def assumption(self) -> str:
        """What the intervals assume, in words."""
        source = (
            f" This is the context if composition explains {100 * EXPLAINED:g} % of the variance "
            "of the effects of bags; counts do not show whether it explains more."
        )
        return (
            f"Assumed (context {self.context:.3g}): from bags without members of some group to "
            "bags of only such members, the expected share within any group changes linearly and "
            f"by at most {self.context:.3g}, and by at most as much from the smallest to the "
            "largest bag. Other differences between bags have nothing to do with composition or "
            f"size.{source * self.from_spread}"
        )

    def difference(self, first: Any, second: Any) -> Estimate:
        """Share within the first group minus that within the second, with its interval."""
        one, other = self[first], self[second]
        weights = np.array([(name == first) - (name == second) for name in self.estimates])
        ends = self._model.interval(weights, one.confidence)
        (low, high), (low_2, high_2) = self.bounds[first], self.bounds[second]
        return _within(ends, (low - high_2, high - low_2), -1.0, self.n_bags, other.confidence)

    def _table(self) -> TextTable:
        columns = ("group", "share", "interval", "always between", "Goodman's regression")
        rows = []
        for name, found in self.estimates.items():
            always = "{:.4f} to {:.4f}".format(*self.bounds[name])
            regression = f"{self.goodman[name]:.4f}"
            rows.append((str(name), found.headline, found.interval, always, regression))
        return TextTable(f"From {self.n_bags} bags", columns, rows, after=self.assumption)


@dataclass(frozen=True)
class _Counts:
    """Members of each group and positives of each bag."""

    members: Array
    positives: Array
    units: Array | None
    context: float = 0.0

    @property
    def sizes(self) -> Array:
        return np.asarray(self.members.sum(axis=1))

    def bounds(self) -> Array:
        """Of Duncan and Davis, added up over bags: one row per group."""
        others = self.sizes[:, None] - self.members
        positives = self.positives[:, None]
        low, high = np.maximum(positives - others, 0), np.minimum(self.members, positives)
        return np.stack([low, high]).sum(axis=1).T / self.members.sum(axis=0)[:, None]

    def goodman(self) -> Array:
        root = np.sqrt(self.sizes)
        rates = self.positives / root
        return np.asarray(np.linalg.lstsq(self.members / root[:, None], rates, rcond=None)[0])

    @cached_property
    def model(self) -> tuple[BoundedModel, Array]:
        """The model of all cells, which are groups within bags, and the group of each."""
        bag, group = np.nonzero(self.members)
        one = np.eye(self.members.shape[1])[group]
        shares = self.members / self.sizes[:, None]
        centre = self.members.T @ shares / self.members.sum(axis=0)[:, None]
        moved = shares[bag] - centre[group]
        # Compositions add up to one: slopes that differ by at most `context` are as good as slopes
        # of half of it, up or down.
        rank = stats.rankdata(self.sizes) / len(self.sizes)
        moved = np.column_stack([moved / 2, rank[bag] - 0.5])
        slopes = self.context * one[:, :, None] * moved[:, None, :]
        return BoundedModel(
            self.positives / self.sizes,
            self.sizes,
            bag,
            self.members[bag, group],
            np.zeros(len(bag)),
            one,
            slopes.reshape(len(bag), -1),
            np.column_stack([np.ones(len(bag)), one]),
            self.units,
        ), group

    def spread(self) -> float:
        """Context at which composition explains the stated share of what bags do (D31).

        The rest is the spread about Goodman's line, at the upper end of its 90 % interval.
        """
        shares = self.members / self.sizes[:, None]
        rates = self.positives / self.sizes
        fitted = shares @ np.linalg.lstsq(shares, rates, rcond=None)[0]
        chance = np.clip(fitted, 0.02, 0.98)
        freedom = len(rates) - shares.shape[1]
        apart = np.sum((rates - fitted) ** 2) / stats.chi2.ppf(0.05, freedom)
        apart -= np.mean(chance * (1 - chance) / self.sizes)
        composition = shares.var(axis=0, ddof=1).sum() / 2
        odds = EXPLAINED / (1 - EXPLAINED)
        return float(np.sqrt(np.clip(odds * apart / max(composition, 1e-12), 0, 1)))

    def interval(self, weights: Array, confidence: float) -> tuple[float, float, float]:
        """Of the sum over groups of their shares times weights."""
        model, group = self.model
        return model.interval((weights / self.members.sum(axis=0))[group], confidence)


def estimate_groups(
    members: Any,
    positives: Any,
    *,
    context: float | Literal["spread"] = "spread",
    groups: Sequence[Any] | None = None,
    blocks: Any = None,
    confidence: float = 0.95,
) -> GroupShares:
    r"""Estimate the share of positives within each group from counts of bags.

    The question of ecological inference: precincts report votes and how many of their people are of
    each group; what share of each group voted for the measure?

    .. math:: E[\theta_{ig}] = \alpha_g + \delta_g \cdot (x_i - \bar x_g) + c_g r_i, \qquad
              \max_h \delta_{gh} - \min_h \delta_{gh} \le L, \quad |c_g| \le L

    for the share :math:`\theta_{ig}` within group :math:`g` of bag :math:`i` with composition
    :math:`x_i`, whose size has the rank :math:`r_i` from 0 to 1; :math:`L` is `context`. The bag's
    rate is :math:`\sum_g x_{ig} \theta_{ig}`.

    Parameters
    ----------
    members : array or data frame of shape (n_bags, n_groups)
        Number of each bag's people in each group. Everybody is in exactly one.
    positives : array of shape (n_bags,)
        Number of each bag's people with the label.
    context : float or "spread"
        How far the expected share within a group may move from bags without to bags wholly of some
        group, and from the smallest bag to the largest. 0 is Goodman's regression, 1 assumes next
        to nothing. Counts do not determine it. "spread" assumes that composition explains at most
        80 % of the variance of the effects of bags. Counts show the rest: how far rates of bags
        with the same composition differ.
    groups : sequence, optional
        Names of the groups; by default those of the columns, or numbers.
    blocks : array of shape (n_bags,), optional
        What bags have in common, such as a county. Bags of one block may then share an effect.
    confidence : float

    Returns
    -------
    GroupShares

    Notes
    -----
    The interval is that of bias-aware linear estimation (D29, D30). It holds the share of these
    people with the stated confidence for the worst slopes that the assumption allows, and more
    often for others. It is then cut to the bounds of Duncan and Davis, which always hold. Effects
    of bags that have nothing to do with composition or size may be of any size.

    References
    ----------
    duncan1953alternative, goodman1953ecological, armstrong2018optimal

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> members = rng.integers(20, 200, size=(100, 2))
    >>> counts = rng.binomial(members, [0.3, 0.8]).sum(axis=1)
    >>> found = estimate_groups(members, counts, context=0.1, groups=["old", "young"])
    >>> found["old"].low < 0.3 < found["old"].high, found["young"].high <= 1
    (True, True)
    """
    if groups is None:
        groups = list(getattr(members, "columns", range(np.shape(members)[-1])))
    counts = _read(members, positives, groups, blocks)
    check_share("confidence", confidence)
    from_spread = isinstance(context, str) and context == "spread"
    if not from_spread:
        check_reach("context", context, 'or "spread"')
    counts = replace(counts, context=counts.spread() if from_spread else float(context))
    bounds = counts.bounds()
    estimates = {}
    for number, name in enumerate(groups):
        ends = counts.interval(np.eye(len(groups))[number], confidence)
        estimates[name] = _within(ends, bounds[number], 0.0, len(counts.sizes), confidence)
    return GroupShares(
        estimates,
        {name: (float(low), float(high)) for name, (low, high) in zip(groups, bounds, strict=True)},
        dict(zip(groups, counts.goodman().tolist(), strict=True)),
        counts.context,
        from_spread,
        len(counts.sizes),
        counts,
    )


def _within(
    ends: tuple[float, float, float], bounds: Any, lowest: float, n_bags: int, confidence: float
) -> Estimate:
    """Estimate and interval, cut to bounds that always hold; none if it lies outside them."""
    value, low, high = np.clip(ends, *bounds).tolist()
    reason = ""
    if ends[1] > bounds[1] + 1e-9 or ends[2] < bounds[0] - 1e-9:
        low = high = np.nan
        reason = "the counts contradict the assumption"
    return Estimate(value, low, high, np.nan, lowest, 1.0, n_bags, confidence, reason)


def _read(members: Any, positives: Any, groups: Any, blocks: Any) -> _Counts:
    table, counts = np.asarray(members, dtype=float), np.asarray(positives, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2 or len(groups) != table.shape[1]:
        raise BagDataError(
            "members must be a table with one row per bag and one column per group, at least two, "
            f"got shape {table.shape} and {len(groups)} names of groups."
        )
    n_bags, n_groups = table.shape
    if counts.shape != (n_bags,):
        raise BagDataError(f"positives must be {n_bags} counts, one per bag, got {counts.shape}.")
    if n_bags < n_groups + 2:
        raise BagDataError(
            f"members must have at least {n_groups + 2} bags for {n_groups} groups, got {n_bags}."
        )
    if not np.isfinite(table).all() or (table < 0).any():
        raise BagDataError("members must be finite and not negative; drop bags with gaps.")
    if (table.sum(axis=1) == 0).any() or (table.sum(axis=0) == 0).any():
        raise BagDataError("members must have no empty bag and no empty group; drop those.")
    if not ((counts >= 0) & (counts <= table.sum(axis=1) * (1 + 1e-9))).all():
        raise BagDataError("positives must lie between 0 and the members of their bag.")
    units = read_blocks(blocks, np.arange(n_bags), list(range(n_bags)))
    return _Counts(table, counts, units)
