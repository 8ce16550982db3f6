"""Many trials trained at once: `Trial`, the stack, the one training loop, results."""

from unbag.engine.loop import train
from unbag.engine.monitor import Criterion, Monitor, held_out_risk, labelled_error
from unbag.engine.settings import Settings
from unbag.engine.trial import Trial, TrialResult

__all__ = [
    "Criterion",
    "Monitor",
    "Settings",
    "Trial",
    "TrialResult",
    "held_out_risk",
    "labelled_error",
    "train",
]
