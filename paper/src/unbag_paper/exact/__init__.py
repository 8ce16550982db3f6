"""Exact 0-1 minimisation: finite classes, thresholds, intervals, stumps, small linear classes."""

from unbag_paper.exact.counted import CountedBags, combine_small_bags, counted_bags
from unbag_paper.exact.cuts import Cut, CutMinimisers, minimise_stumps, minimise_thresholds
from unbag_paper.exact.finite import FiniteMinimisers, minimise_finite, symmetrise
from unbag_paper.exact.intervals import Interval, IntervalMinimisers, minimise_intervals
from unbag_paper.exact.linear import LinearMinimisers, minimise_linear
from unbag_paper.exact.rules import (
    EPRM,
    CountRule,
    DebiasedSquare,
    EasyLLP,
    ProportionLog,
    ProportionSquare,
    bag_loss,
)

__all__ = [
    "EPRM",
    "CountRule",
    "CountedBags",
    "Cut",
    "CutMinimisers",
    "DebiasedSquare",
    "EasyLLP",
    "FiniteMinimisers",
    "Interval",
    "IntervalMinimisers",
    "LinearMinimisers",
    "ProportionLog",
    "ProportionSquare",
    "bag_loss",
    "combine_small_bags",
    "counted_bags",
    "minimise_finite",
    "minimise_intervals",
    "minimise_linear",
    "minimise_stumps",
    "minimise_thresholds",
    "symmetrise",
]
