"""A net that a CPU trains in minutes."""

from __future__ import annotations

from unbag.models.nets import image_shape
from unbag.models.resnet import ResNet

__all__ = ["small_net"]


def small_net(input_shape: tuple[int, ...], n_outputs: int) -> ResNet:
    """Three residual blocks, after a step that halves images of 16 pixels or more."""
    channels, *sides = image_shape(input_shape)
    net = ResNet(channels, n_outputs, widths=(32, 64, 128), n_blocks=1)
    if min(sides) >= 16:
        net.stem.stride = (2, 2)
    return net
