"""Triton kernels of `Convolution`, as operators that autograd and the compiler understand."""

from __future__ import annotations

from torch import Tensor

from unbag.models.kernels.features import convolve_features
from unbag.models.kernels.pixels import convolve_pixels

__all__ = ["fused_convolution"]


def fused_convolution(x: Tensor, weight: Tensor, bias: Tensor, pad: int, pool: int) -> Tensor:
    """Convolve, rectify and pool; the result is (n, channels, height, width), channels last."""
    convolve = convolve_pixels if x.shape[1] <= 3 else convolve_features
    return convolve(x, weight, bias, pad, pool).permute(0, 3, 1, 2)
