"""Training of many trials at once: `Trial`, `Settings`, the training loop, results."""

from unbag.training.loop import Training, train
from unbag.training.monitor import Criterion, Monitor, held_out_risk
from unbag.training.settings import Settings
from unbag.training.trial import Trial, TrialResult

__all__ = [
    "Criterion",
    "Monitor",
    "Settings",
    "Training",
    "Trial",
    "TrialResult",
    "held_out_risk",
    "train",
]
