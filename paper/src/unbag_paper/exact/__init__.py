"""Exact 0-1 minimisation: finite classes, thresholds, intervals, stumps, small linear classes."""

from unbag_paper.exact.count_rules import (
    EPRM,
    CountDebiasedSquare,
    CountProportionLog,
    CountProportionSquare,
    CountRule,
    EasyLLP,
    bag_loss,
)
from unbag_paper.exact.counted_bags import CountedBags, combine_small_bags, counted_bags
from unbag_paper.exact.eprm_rule import EprmRule
from unbag_paper.exact.finite import FiniteMinimisers, minimise_finite, symmetrise
from unbag_paper.exact.intervals import Interval, IntervalMinimisers, minimise_intervals
from unbag_paper.exact.linear import LinearMinimisers, minimise_linear
from unbag_paper.exact.thresholds import Cut, CutMinimisers, minimise_stumps, minimise_thresholds

__all__ = [
    "EPRM",
    "CountDebiasedSquare",
    "CountProportionLog",
    "CountProportionSquare",
    "CountRule",
    "CountedBags",
    "Cut",
    "CutMinimisers",
    "EasyLLP",
    "EprmRule",
    "FiniteMinimisers",
    "Interval",
    "IntervalMinimisers",
    "LinearMinimisers",
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
