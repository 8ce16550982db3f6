"""One training on many workers: processes of this machine, torchrun, or Ray Train."""

from unbag_paper.distributed.data_parallel import ParallelTraining
from unbag_paper.distributed.sharding import ShardedBagBatch, shard_bags
from unbag_paper.distributed.training import train_sharded

__all__ = ["ParallelTraining", "ShardedBagBatch", "shard_bags", "train_sharded"]
