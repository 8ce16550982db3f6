"""The convolution of our nets: with its ReLU and pooling one piece, which a GPU computes fused."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d

__all__ = ["Convolution"]


class Convolution(nn.Conv2d):
    """A 3 x 3 convolution, its ReLU, and optionally 2 x 2 max pooling.

    Parameters
    ----------
    in_channels, out_channels : int
    padding : int
        Zeros around the image.
    pool : int
        1 for no pooling, 2 for windows of 2 x 2.

    Notes
    -----
    On a GPU in bfloat16 the fused kernels of `unbag.models.kernels` run; elsewhere, and for numbers
    of channels they are not made for, the three layers are called in turn.

    Examples
    --------
    >>> Convolution(1, 32, pool=2)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 32, 13, 13])
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, padding: int = 0, pool: int = 1
    ) -> None:
        super().__init__(in_channels, out_channels, 3, padding=padding)
        self.pool = pool
        self.pad = padding

    def forward(self, x: Tensor) -> Tensor:
        """Convolve, rectify and pool."""
        if x.is_cuda and torch.is_autocast_enabled("cuda") and self._has_kernels(x):
            from unbag.models.kernels import fused_convolution

            assert self.bias is not None
            return fused_convolution(x, self.weight, self.bias, self.pad, self.pool)
        value = conv2d(x, self.weight, self.bias, padding=self.pad).relu()
        return value if self.pool == 1 else max_pool2d(value, self.pool)

    def _has_kernels(self, x: Tensor) -> bool:
        """Pixels, which need no gradient, or channels in blocks; and places that fit 32 bits."""
        pixels = self.in_channels in (1, 3) and not x.requires_grad
        largest = max(self.in_channels, self.out_channels) * (x.numel() // self.in_channels)
        blocks = {16, 32, 64, 128}
        known = self.out_channels in blocks and (pixels or self.in_channels in blocks)
        return known and 2 * largest < 2**31
