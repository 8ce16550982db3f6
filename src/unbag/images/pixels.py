"""Facts about images without training: components of pixels, and mirror symmetry."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from unbag.training.batches import as_inputs

__all__ = ["looks_alike_mirrored", "pixel_components"]

N_COMPONENTS = 40
LARGEST_SIDE = 32
# Share of all variation that is in the asymmetry of the mean image: 2e-5 for the photographs of
# CIFAR-10, 2e-2 for handwritten digits.
ASYMMETRIC = 2e-3


@torch.no_grad()
def pixel_components(images: Tensor, *, n_components: int = N_COMPONENTS) -> Tensor:
    """Principal components of the pixels, each divided by the root of its deviation.

    Parameters
    ----------
    images : Tensor of shape (n, channels, height, width)
        Bytes, or floats in [0, 1]; large ones are made smaller first.
    n_components : int
    """
    pixels = torch.cat([_smaller(part).flatten(1) for part in images.split(2000)])
    pixels -= pixels.mean(dim=0)
    directions = torch.linalg.eigh(pixels.t() @ pixels)[1][:, -n_components:]
    components = pixels @ directions
    return components / components.std(dim=0).clamp(min=1e-6).sqrt()


@torch.no_grad()
def looks_alike_mirrored(images: Tensor) -> bool:
    """Whether the mean image is symmetric, as that of photographs is and that of digits is not.

    Examples
    --------
    >>> left = torch.zeros(50, 1, 4, 4)
    >>> left[..., 0] = torch.rand(50, 1, 4)
    >>> looks_alike_mirrored(left), looks_alike_mirrored(torch.cat([left, left.flip(-1)]))
    (False, True)
    """
    pixels = torch.cat([_smaller(part) for part in images.split(2000)])
    odd = (pixels - pixels.flip(-1)) / 2
    noise = odd.var(dim=0).sum() / len(pixels)  # of the mean's square, were it symmetric
    asymmetry = odd.mean(dim=0).square().sum() - 3 * noise
    return bool(asymmetry <= ASYMMETRIC * pixels.var(dim=0).sum())


def _smaller(images: Tensor) -> Tensor:
    """Floats of at most 32 by 32 pixels."""
    height, width = (min(side, LARGEST_SIDE) for side in images.shape[2:])
    return adaptive_avg_pool2d(as_inputs(images), (height, width))
