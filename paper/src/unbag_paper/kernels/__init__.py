"""Triton kernels of `Convolution`, as operators that autograd and the compiler understand."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unbag.models.nets import Convolution

__all__ = ["KernelConvolution", "fused_convolution", "use_kernels"]

_BLOCKS = {16, 32, 64, 128}


class KernelConvolution(Convolution):
    """A `Convolution` that runs as one kernel where it can: on a GPU, in bfloat16."""

    def forward(self, x: Tensor) -> Tensor:
        """Convolve, rectify and pool."""
        value = fused_convolution(self, x)
        return super().forward(x) if value is None else value


def use_kernels(model: nn.Module) -> None:
    """Let every `Convolution` of a net run as a kernel."""
    for module in model.modules():
        if type(module) is Convolution:
            module.__class__ = KernelConvolution


def fused_convolution(layer: Convolution, x: Tensor) -> Tensor | None:
    """Convolve, rectify and pool; the result is (n, channels, height, width), channels last."""
    if not (x.is_cuda and torch.is_autocast_enabled("cuda") and _has_kernels(layer, x)):
        return None
    from unbag_paper.kernels.features import convolve_features
    from unbag_paper.kernels.pixels import convolve_pixels

    assert layer.bias is not None
    convolve = convolve_pixels if x.shape[1] <= 3 else convolve_features
    return convolve(x, layer.weight, layer.bias, layer.pad, layer.pool).permute(0, 3, 1, 2)


def _has_kernels(layer: Convolution, x: Tensor) -> bool:
    """Pixels, which need no gradient, or channels in blocks; and places that fit 32 bits."""
    pixels = layer.in_channels in (1, 3) and not x.requires_grad
    largest = max(layer.in_channels, layer.out_channels) * (x.numel() // layer.in_channels)
    known = layer.out_channels in _BLOCKS and (pixels or layer.in_channels in _BLOCKS)
    return known and 2 * largest < 2**31
