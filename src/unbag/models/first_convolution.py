"""The first convolution of a net, fused with its ReLU and pooling on a GPU.

A convolution of one or three channels moves far more bytes than it computes: cuDNN spends more time
on it than on all later layers of the small CNN together. One Triton kernel reads the pixels, keeps
the convolution in registers and writes the pooled maximum only; a second one gives the gradient of
the weights. No gradient with respect to the pixels exists, so such a layer must come first.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d

__all__ = ["FirstConvolution"]


class FirstConvolution(nn.Conv2d):
    """A 3 x 3 convolution of pixels, its ReLU, and optionally 2 x 2 max pooling.

    Parameters
    ----------
    in_channels, out_channels : int
    padding : int
        Zeros around the image.
    pool : int
        1 for no pooling, 2 for windows of 2 x 2.

    Notes
    -----
    The fused kernels run on a GPU in bfloat16; elsewhere the three layers are called in turn.

    Examples
    --------
    >>> FirstConvolution(1, 32, pool=2)(torch.zeros(5, 1, 28, 28)).shape
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
        if x.is_cuda and torch.is_autocast_enabled("cuda"):
            from unbag.models.kernels import fused_first_convolution

            assert self.bias is not None
            return fused_first_convolution(x, self.weight, self.bias, self.pad, self.pool)
        value = conv2d(x, self.weight, self.bias, padding=self.pad).relu()
        return value if self.pool == 1 else max_pool2d(value, self.pool)
