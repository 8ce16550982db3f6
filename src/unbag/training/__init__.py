"""Many trials trained at once: `Trial`, the stack, the one training loop, results."""

from unbag.training.accelerator import Accelerator
from unbag.training.distributed import train_sharded
from unbag.training.loop import Training, train
from unbag.training.monitor import Criterion, Monitor, held_out_risk, labelled_error
from unbag.training.settings import Settings
from unbag.training.sharding import ShardedBagBatch, shard_bags
from unbag.training.trial import Trial, TrialResult

__all__ = [
    "Accelerator",
    "Criterion",
    "Monitor",
    "Settings",
    "ShardedBagBatch",
    "Training",
    "Trial",
    "TrialResult",
    "held_out_risk",
    "labelled_error",
    "shard_bags",
    "train",
    "train_sharded",
]
