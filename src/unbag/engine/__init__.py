"""Many trials trained at once: `Trial`, the stack, the one training loop, results."""

from unbag.engine.distributed import train_sharded
from unbag.engine.loop import train
from unbag.engine.monitor import Criterion, Monitor, held_out_risk, labelled_error
from unbag.engine.settings import Settings
from unbag.engine.sharding import ShardedBagBatch, shard_bags
from unbag.engine.training import Training
from unbag.engine.trial import Trial, TrialResult

__all__ = [
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
