"""EasyLLP: an unbiased loss from reweighted labels."""

from dataclasses import dataclass

from unbag.rules import EasyLog
from unbag_paper.league.methods.base import RuleMethod

__all__ = ["EasyLlp"]


@dataclass(eq=False)
class EasyLlp(RuleMethod):
    """With the log loss, and the prior of all training bags."""

    name, label, reference = "easyllp", "EasyLLP", "busafekete2023easy"
    rule = EasyLog()
