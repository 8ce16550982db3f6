"""Learn a classifier for single instances when only each bag's average label is known."""

__version__ = "0.1.0"
