"""LLP-MM: moments of a bag's counts beyond the mean."""

from dataclasses import dataclass

from unbag.rules import FactorialMoments
from unbag_paper.league.methods.base import RuleMethod

__all__ = ["LlpMm"]


@dataclass(eq=False)
class LlpMm(RuleMethod):
    """Factorial moments up to the second; we had a description of the method, and not its code."""

    name, label, reference = "llp_mm", "LLP-MM", ""
    rule = FactorialMoments(order=2)
