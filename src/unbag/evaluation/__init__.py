"""Metrics from bags, with intervals; checks of bags; model selection without labels."""

from unbag.evaluation.bag_effects import BagEffects, estimate_bag_effects
from unbag.evaluation.bag_report import BagReport, Finding
from unbag.evaluation.checks import check_bags, check_made_bags
from unbag.evaluation.comparison import Comparison, compare_models
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.evaluate import evaluate
from unbag.evaluation.importance import ColumnImportance, column_importance
from unbag.evaluation.learning_curve import BagLearningCurve, bag_learning_curve
from unbag.evaluation.natural_groups import GroupShares, estimate_groups
from unbag.evaluation.natural_results import Bounds, NaturalEvaluation
from unbag.evaluation.privacy import PrivacyNoise, privacy_noise
from unbag.evaluation.random_groups import evaluate_bags
from unbag.evaluation.results import AmountEvaluation, Baseline, Evaluation
from unbag.evaluation.risk import estimate_risk, pairwise_value
from unbag.evaluation.selection import bag_scorer, cross_fit_risk, cross_fit_scores

__all__ = [
    "AmountEvaluation",
    "BagEffects",
    "BagLearningCurve",
    "BagReport",
    "Baseline",
    "Bounds",
    "ColumnImportance",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Finding",
    "GroupShares",
    "NaturalEvaluation",
    "PrivacyNoise",
    "bag_learning_curve",
    "bag_scorer",
    "check_bags",
    "check_made_bags",
    "column_importance",
    "compare_models",
    "cross_fit_risk",
    "cross_fit_scores",
    "estimate_bag_effects",
    "estimate_groups",
    "estimate_risk",
    "evaluate",
    "evaluate_bags",
    "pairwise_value",
    "privacy_noise",
]
