"""Risk and metrics from bags, with intervals; checks of the bags; selection without labels."""

from unbag.evaluation.evaluate import evaluate, evaluate_bags
from unbag.evaluation.results import Estimate, Evaluation
from unbag.evaluation.risk import RiskEstimate, estimate_risk, pairwise_value

__all__ = [
    "Estimate",
    "Evaluation",
    "RiskEstimate",
    "estimate_risk",
    "evaluate",
    "evaluate_bags",
    "pairwise_value",
]
