"""What a bag's counts say about its instances: exact, tilted, many classes."""

from unbag.posterior.posterior import bag_posterior

__all__ = ["bag_posterior"]
