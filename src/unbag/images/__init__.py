"""Images in bags: views made on the device, a start without labels, training by consistency."""

from unbag.images.consistency import Consistency, ConsistencySettings
from unbag.images.contrastive import ContrastiveSettings, contrastive_start
from unbag.images.loop import ImageBags, ImageBatch, LoopSettings, train_on_bags
from unbag.images.propagation import image_features, propagate

__all__ = [
    "Consistency",
    "ConsistencySettings",
    "ContrastiveSettings",
    "ImageBags",
    "ImageBatch",
    "LoopSettings",
    "contrastive_start",
    "image_features",
    "propagate",
    "train_on_bags",
]
