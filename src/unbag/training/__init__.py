"""Training of many trials at once: `Trial`, `Settings`, the training loop, results."""

from unbag.training.loop import Training, train
from unbag.training.settings import Settings
from unbag.training.trial import Trial, TrialResult

__all__ = [
    "Settings",
    "Training",
    "Trial",
    "TrialResult",
    "train",
]
