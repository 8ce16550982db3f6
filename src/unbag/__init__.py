"""Learn a classifier for single instances when only each bag's average label is known."""

from unbag.bags import BagBatch

__version__ = "0.1.0"
__all__ = ["BagBatch"]
