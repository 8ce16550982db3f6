"""DLLP: the mean prediction of a bag matches its proportions."""

from dataclasses import dataclass

from unbag.rules import ProportionLog
from unbag_paper.league.methods.base import RuleMethod

__all__ = ["Dllp"]


@dataclass(eq=False)
class Dllp(RuleMethod):
    """Cross entropy between proportions and mean prediction."""

    name, label, reference = "dllp", "DLLP", "ardehaly2017cotraining"
    rule = ProportionLog()
