"""Debiased square loss: with a moving average as published, and from pairs of bags."""

from dataclasses import dataclass

from unbag.rules import DebiasedSquare
from unbag_paper.league.methods.base import RuleMethod

__all__ = ["DsqMoving", "DsqPairwise"]


@dataclass(eq=False)
class DsqMoving(RuleMethod):
    """As published: the mean score is a moving average."""

    name, label, reference = "dsq_moving", "DSQ, moving", "li2024optimistic"
    rule = DebiasedSquare(debias="moving")


@dataclass(eq=False)
class DsqPairwise(RuleMethod):
    """The library's own form: exactly unbiased, from pairs of distinct bags."""

    name, label, reference = "dsq_pairwise", "DSQ, pairwise", ""
    rule = DebiasedSquare(debias="pairwise")
