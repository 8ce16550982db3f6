"""Learning rules, one per file. `RULES` is the registry."""

from __future__ import annotations

from typing import Any

from unbag.rules.base import InstanceLoss, Rule
from unbag.rules.count_likelihood import CountLikelihood
from unbag.rules.count_posterior import CountPosterior
from unbag.rules.debiased_square import DebiasedSquare
from unbag.rules.easy import EasyLog, EasySquare
from unbag.rules.factorial_moments import FactorialMoments
from unbag.rules.proportion_matching import ProportionLog, ProportionSquare

__all__ = [
    "RULES",
    "CountLikelihood",
    "CountPosterior",
    "DebiasedSquare",
    "EasyLog",
    "EasySquare",
    "FactorialMoments",
    "InstanceLoss",
    "ProportionLog",
    "ProportionSquare",
    "Rule",
    "get_rule",
]

RULES: dict[str, type[Rule]] = {
    rule.name: rule
    for rule in (
        ProportionSquare,
        ProportionLog,
        DebiasedSquare,
        EasySquare,
        EasyLog,
        CountLikelihood,
        CountPosterior,
        FactorialMoments,
    )
}


def get_rule(rule: str | Rule, **options: Any) -> Rule:
    """Return the rule with this name; a rule object is returned unchanged.

    Parameters
    ----------
    rule : str or Rule
        A key of `RULES`, or a rule object.
    **options
        Arguments of the rule's class.

    Examples
    --------
    >>> get_rule("debiased_square", debias="batch")
    DebiasedSquare(debias='batch', beta=0.99)
    """
    if isinstance(rule, Rule):
        return rule
    if rule not in RULES:
        raise ValueError(f"rule must be one of {sorted(RULES)} or a Rule object, got {rule!r}.")
    return RULES[rule](**options)
