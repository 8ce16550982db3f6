"""Random views of images, made for a whole batch at once on its device.

Images are (n, channels, height, width) with values in [0, 1].
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

_GREY = (0.299, 0.587, 0.114)


def weak_view(images: Tensor, generator: torch.Generator, *, flip: bool = True) -> Tensor:
    """Shift by up to an eighth of the image, and mirror half of the images."""
    n, _, height, width = images.shape
    reaches = [min(max(1, side // 8), side - 1) for side in (width, height)]
    padding = [reach for reach in reaches for _ in range(2)]
    padded = pad(images, padding, mode="reflect").permute(0, 2, 3, 1)
    down, right = (_whole(n, 2 * reach + 1, images, generator) for reach in reversed(reaches))
    rows = down[:, None] + torch.arange(height, device=images.device)
    columns = right[:, None] + torch.arange(width, device=images.device)
    if flip:
        mirrored = _chance(n, 0.5, images, generator)
        columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    every = torch.arange(n, device=images.device)[:, None, None]
    return padded[every, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def strong_view(images: Tensor, generator: torch.Generator, *, flip: bool = True) -> Tensor:
    """Turn, shear, scale, shift, recolour, and grey out a square."""
    turned = _warp(images, generator, flip=flip, zoom=(0.75, 1.1), turn=math.pi / 8, shear=0.2)
    return _cut_square(_recolour(turned, generator, strength=0.5, grey=0.1), generator)


def contrastive_view(images: Tensor, generator: torch.Generator, *, flip: bool = True) -> Tensor:
    """A random crop, resized, and recoloured strongly: the views of contrastive learning."""
    cropped = _warp(images, generator, flip=flip, zoom=(0.45, 1.0), turn=0.0, shear=0.0)
    return _recolour(cropped, generator, strength=0.8, grey=0.2)


def _warp(
    images: Tensor,
    generator: torch.Generator,
    *,
    flip: bool,
    zoom: tuple[float, float],
    turn: float,
    shear: float,
) -> Tensor:
    """One affine map an image; a zoom below one shows a part of it, at a random place."""
    n = len(images)
    scale = _between(n, *zoom, images, generator)
    aspect = _between(n, -0.14, 0.14, images, generator).exp()
    angle = _between(n, -turn, turn, images, generator)
    slant = _between(n, -shear, shear, images, generator)
    sign = 1 - 2 * (_chance(n, 0.5, images, generator) & flip).float()
    cos, sin = scale * angle.cos(), scale * angle.sin()
    room = (1 - scale).clamp(min=0.125)
    shift = torch.stack([_between(n, -1, 1, images, generator) * room for _ in range(2)], dim=1)
    across = torch.stack([sign * cos * aspect, -sin + slant], dim=1)
    down = torch.stack([sign * sin, cos / aspect], dim=1)
    maps = torch.cat([torch.stack([across, down], dim=1), shift[:, :, None]], dim=2)
    grid = affine_grid(maps, list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def _recolour(
    images: Tensor, generator: torch.Generator, *, strength: float, grey: float
) -> Tensor:
    """Change brightness, contrast and, in colour images, saturation and hue."""
    n = len(images)

    def factor() -> Tensor:
        return _between(n, 1 - strength, 1 + strength, images, generator)[:, None, None, None]

    bright = images * factor()
    middle = bright.mean(dim=(1, 2, 3), keepdim=True)
    changed = middle + (bright - middle) * factor()
    if images.shape[1] == 3:
        changed = _saturate(_turn_hue(changed, generator, strength), factor(), grey, generator)
    kept = _chance(n, 0.2, images, generator)[:, None, None, None]
    return torch.where(kept, images, changed.clamp(0, 1))


def _saturate(images: Tensor, factor: Tensor, grey: float, generator: torch.Generator) -> Tensor:
    weights = torch.tensor(_GREY, device=images.device, dtype=images.dtype)
    plain = torch.einsum("nchw,c->nhw", images, weights)[:, None]
    colourless = _chance(len(images), grey, images, generator)[:, None, None, None]
    return plain + (images - plain) * torch.where(colourless, 0.0, factor)


def _turn_hue(images: Tensor, generator: torch.Generator, strength: float) -> Tensor:
    """Turn colours about the grey axis: Rodrigues' formula with the axis (1, 1, 1) / sqrt 3."""
    angle = _between(len(images), -strength, strength, images, generator)
    cos, sin = angle.cos()[:, None, None], angle.sin()[:, None, None] / math.sqrt(3)
    eye = torch.eye(3, device=images.device)
    cross = torch.tensor([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]], device=images.device)
    turns = eye * cos + (1 - cos) / 3 + cross * sin
    return torch.einsum("nij,njhw->nihw", turns.to(images.dtype), images)


def _cut_square(images: Tensor, generator: torch.Generator) -> Tensor:
    """Grey out a square of up to half the image's width."""
    n, _, height, width = images.shape
    side = _between(n, 0.0, 0.5 * width, images, generator)[:, None]

    def inside(size: int) -> Tensor:
        centre = _between(n, 0, size, images, generator)[:, None]
        return (torch.arange(size, device=images.device) + 0.5 - centre).abs() < side / 2

    square = inside(height)[:, None, :, None] & inside(width)[:, None, None, :]
    return torch.where(square, 0.5, images)


def _between(n: int, low: float, high: float, like: Tensor, generator: torch.Generator) -> Tensor:
    return low + (high - low) * torch.rand(n, device=like.device, generator=generator)


def _whole(n: int, below: int, like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randint(below, (n,), device=like.device, generator=generator)


def _chance(n: int, probability: float, like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(n, device=like.device, generator=generator) < probability
