"""What a bag's counts say about its instances: exact, tilted, many classes."""

from unbag.posterior.exact import enough_frequencies, exact_posterior
from unbag.posterior.posterior import bag_posterior
from unbag.posterior.tilted import tilt_to_counts, tilted_posterior

__all__ = [
    "bag_posterior",
    "enough_frequencies",
    "exact_posterior",
    "tilt_to_counts",
    "tilted_posterior",
]
