"""Bags: validated once, here; made, split, batched and read from arrays."""

from unbag.bags.batch import BagBatch, Task

__all__ = ["BagBatch", "Task"]
