"""Images in bags: views made on the device, a start without labels, training by consistency."""

from unbag.images.consistency import Consistency, ConsistencySettings
from unbag.images.contrastive import ContrastiveSettings, contrastive_start
from unbag.images.loop import ImageBags, ImageBatch, LoopSettings, train_on_bags
from unbag.images.nets import class_probabilities, image_features, small_net
from unbag.images.pixels import looks_alike_mirrored, pixel_components
from unbag.images.propagation import propagate

__all__ = [
    "Consistency",
    "ConsistencySettings",
    "ContrastiveSettings",
    "ImageBags",
    "ImageBatch",
    "LoopSettings",
    "class_probabilities",
    "contrastive_start",
    "image_features",
    "looks_alike_mirrored",
    "pixel_components",
    "propagate",
    "small_net",
    "train_on_bags",
]
