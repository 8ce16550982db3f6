"""Risk and metrics from bags, with intervals; checks of the bags; selection without labels."""

from unbag.evaluation.risk import RiskEstimate, estimate_risk, pairwise_value

__all__ = ["RiskEstimate", "estimate_risk", "pairwise_value"]
