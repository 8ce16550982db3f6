"""Images in bags: views made on the device, a start without labels, training by consistency."""

from unbag.images.consistency import ConsistencySettings, fine_tune
from unbag.images.contrastive import ContrastiveSettings, contrastive_start
from unbag.images.propagation import propagate
from unbag.images.tilting import BagCounts, tilt

__all__ = [
    "BagCounts",
    "ConsistencySettings",
    "ContrastiveSettings",
    "contrastive_start",
    "fine_tune",
    "propagate",
    "tilt",
]
