"""Label probabilities given the counts of bags: exact, tilted, many classes."""

from unbag.posterior.posterior import bag_posterior

__all__ = ["bag_posterior"]
