"""Many trials trained at once: `Trial`, the stack, the one training loop, results."""

from unbag.training.accelerator import Accelerator
from unbag.training.loop import Training, train
from unbag.training.monitor import Criterion, Monitor, held_out_risk, labelled_error
from unbag.training.settings import Settings
from unbag.training.trial import Trial, TrialResult

__all__ = [
    "Accelerator",
    "Criterion",
    "Monitor",
    "Settings",
    "Training",
    "Trial",
    "TrialResult",
    "held_out_risk",
    "labelled_error",
    "train",
]
