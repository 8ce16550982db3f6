"""A net that a CPU trains in minutes, and predictions and features of images."""

from __future__ import annotations

import torch
from torch import Tensor

from unbag.models.nets import image_shape
from unbag.models.resnet import ResNet
from unbag.training.batches import as_inputs

__all__ = ["class_probabilities", "image_features", "small_net"]


def small_net(input_shape: tuple[int, ...], n_outputs: int) -> ResNet:
    """Three residual blocks, after a step that halves images of 16 pixels or more."""
    channels, *sides = image_shape(input_shape)
    net = ResNet(channels, n_outputs, widths=(32, 64, 128), n_blocks=1)
    if min(sides) >= 16:
        net.stem.stride = (2, 2)
    return net


@torch.no_grad()
def class_probabilities(net: torch.nn.Module, images: Tensor, *, mirrored: bool) -> Tensor:
    """Class probabilities of every image, optionally averaged with those of its mirror image."""

    def of(part: Tensor) -> Tensor:
        return net(as_inputs(part)).float().softmax(dim=1)

    parts = images.split(1000)
    if mirrored:
        return torch.cat([(of(part) + of(part.flip(-1))) / 2 for part in parts])
    return torch.cat([of(part) for part in parts])


@torch.no_grad()
def image_features(net: torch.nn.Module, images: Tensor, *, chunk: int = 2000) -> Tensor:
    """Features of every image, by a net that has a method `features`."""
    net.eval()
    return torch.cat([net.features(as_inputs(part)).float() for part in images.split(chunk)])  # type: ignore[operator]
