"""The convolution of our nets: with its ReLU and pooling one piece."""

from __future__ import annotations

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

    Examples
    --------
    >>> import torch
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
        value = conv2d(x, self.weight, self.bias, padding=self.pad).relu()
        return value if self.pool == 1 else max_pool2d(value, self.pool)
