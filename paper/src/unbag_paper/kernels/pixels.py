"""Convolution of pixels, for the first layer of a net.

A convolution of one or three channels moves far more bytes than it computes: cuDNN spends more time
on it than on all later layers of the small CNN together. One kernel reads the pixels, keeps the
convolution in registers and writes the pooled maximum only; a second one gives the gradient of the
weights. There is no gradient with respect to the pixels.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["convolve_pixels"]

# Positions of a program at a time, and its warps: with more, the registers do not hold the patches.
_FORWARD = {"BLOCK": 64, "num_warps": 2}
_BACKWARD = {"BLOCK": 32, "num_warps": 1, "num_stages": 1}
_PROGRAMS = 1056  # of the gradient, eight for each of the 132 multiprocessors


@triton.jit
def _positions(m, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, POOL: tl.constexpr,
               PAD: tl.constexpr, s: tl.constexpr):  # fmt: skip
    """Image, and upper left corner of the patch, of output position `m` and pooling offset `s`."""
    image = m // (HEIGHT * WIDTH)
    row = m // WIDTH % HEIGHT * POOL + s // POOL - PAD
    column = m % WIDTH * POOL + s % POOL - PAD
    return image, row, column


@triton.jit
def _patches(x, m, valid, ROWS: tl.constexpr, COLUMNS: tl.constexpr, HEIGHT: tl.constexpr,
             WIDTH: tl.constexpr, C: tl.constexpr, PAD: tl.constexpr, POOL: tl.constexpr,
             TAPS: tl.constexpr, s: tl.constexpr):  # fmt: skip
    """Pixels under the kernel at each position: (positions, taps), zero outside the image."""
    image, row, column = _positions(m, HEIGHT, WIDTH, POOL, PAD, s)
    tap = tl.arange(0, TAPS)
    i = row[:, None] + (tap % 9 // 3)[None, :]
    j = column[:, None] + (tap % 3)[None, :]
    inside = (i >= 0) & (i < ROWS) & (j >= 0) & (j < COLUMNS)
    mask = valid[:, None] & (tap < 9 * C)[None, :] & inside
    offset = ((image[:, None] * C + (tap // 9)[None, :]) * ROWS + i) * COLUMNS + j
    return tl.load(x + offset, mask=mask, other=0.0).to(tl.bfloat16)


# `which` names the maximum of each window, or none of its places where the ReLU is off.
@triton.jit
def _forward_kernel(x, weight, bias, out, which, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
                    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, C: tl.constexpr, OUT: tl.constexpr,
                    PAD: tl.constexpr, POOL: tl.constexpr, TAPS: tl.constexpr,
                    BLOCK: tl.constexpr):  # fmt: skip
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = m < n
    tap, channel = tl.arange(0, TAPS), tl.arange(0, OUT)
    taps = tl.load(
        weight + channel[None, :] * (9 * C) + tap[:, None], mask=(tap < 9 * C)[:, None], other=0.0
    ).to(tl.bfloat16)
    best = tl.full((BLOCK, OUT), -1e30, tl.float32)
    chosen = tl.zeros((BLOCK, OUT), tl.int32)
    for s in tl.static_range(POOL * POOL):
        patch = _patches(x, m, valid, ROWS, COLUMNS, HEIGHT, WIDTH, C, PAD, POOL, TAPS, s)
        value = tl.dot(patch, taps)
        chosen = tl.where(value > best, s, chosen)
        best = tl.maximum(value, best)
    best += tl.load(bias + channel)[None, :]
    chosen = tl.where(best > 0, chosen, POOL * POOL)
    place = m[:, None] * OUT + channel[None, :]
    tl.store(out + place, tl.maximum(best, 0.0).to(tl.bfloat16), mask=valid[:, None])
    tl.store(which + place, chosen.to(tl.uint8), mask=valid[:, None])


@triton.jit
def _backward_kernel(x, gradient, which, weight_part, bias_part, n, ROWS: tl.constexpr,
                     COLUMNS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
                     C: tl.constexpr, OUT: tl.constexpr, PAD: tl.constexpr, POOL: tl.constexpr,
                     TAPS: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr):  # fmt: skip
    program = tl.program_id(0)
    tap, channel = tl.arange(0, TAPS), tl.arange(0, OUT)
    weight_sum = tl.zeros((TAPS, OUT), tl.float32)
    bias_sum = tl.zeros((OUT,), tl.float32)
    for step in range(STEPS):
        m = (step * tl.num_programs(0) + program) * BLOCK + tl.arange(0, BLOCK)
        valid = m < n
        place = m[:, None] * OUT + channel[None, :]
        g = tl.load(gradient + place, mask=valid[:, None], other=0.0).to(tl.float32)
        chosen = tl.load(which + place, mask=valid[:, None], other=POOL * POOL).to(tl.int32)
        bias_sum += tl.sum(tl.where(chosen < POOL * POOL, g, 0.0), axis=0)
        for s in tl.static_range(POOL * POOL):
            patch = _patches(x, m, valid, ROWS, COLUMNS, HEIGHT, WIDTH, C, PAD, POOL, TAPS, s)
            share = tl.where(chosen == s, g, 0.0).to(tl.bfloat16)
            weight_sum += tl.dot(tl.trans(patch), share)
    tl.store(weight_part + (program * TAPS + tap[:, None]) * OUT + channel[None, :], weight_sum)
    tl.store(bias_part + channel * tl.num_programs(0) + program, bias_sum)


def _shape(x: Tensor, weight: Tensor, pad: int, pool: int) -> tuple[int, int, int, int]:
    height, width = ((side + 2 * pad - 2) // pool for side in x.shape[-2:])
    return x.shape[0], height, width, weight.shape[0]


def _meta(x: Tensor, weight: Tensor, pad: int, pool: int) -> dict[str, int]:
    """What kernels are compiled for: sizes too, as divisions by them are then cheap."""
    _, height, width, outputs = _shape(x, weight, pad, pool)
    _, channels, rows, columns = x.shape
    sizes = {"ROWS": rows, "COLUMNS": columns, "HEIGHT": height, "WIDTH": width}
    taps = 16 if channels == 1 else 32
    return sizes | {"C": channels, "OUT": outputs, "PAD": pad, "POOL": pool, "TAPS": taps}


@torch.library.custom_op("unbag::convolve_pixels", mutates_args=())
def _forward(x: Tensor, weight: Tensor, bias: Tensor, pad: int, pool: int) -> tuple[Tensor, Tensor]:
    n, height, width, _ = shape = _shape(x, weight, pad, pool)
    out = torch.empty(shape, dtype=torch.bfloat16, device=x.device)
    which = torch.empty(shape, dtype=torch.uint8, device=x.device)
    m = n * height * width
    _forward_kernel[(triton.cdiv(m, _FORWARD["BLOCK"]),)](
        x.contiguous(), weight.contiguous(), bias, out, which, m,
        **_meta(x, weight, pad, pool), **_FORWARD,
    )  # fmt: skip
    return out, which


@_forward.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, pad: int, pool: int) -> tuple[Tensor, Tensor]:
    shape = _shape(x, weight, pad, pool)
    return x.new_empty(shape, dtype=torch.bfloat16), x.new_empty(shape, dtype=torch.uint8)


@torch.library.custom_op("unbag::convolve_pixels_backward", mutates_args=())
def _backward(
    gradient: Tensor, x: Tensor, weight: Tensor, which: Tensor, pad: int, pool: int
) -> tuple[Tensor, Tensor]:
    meta = _meta(x, weight, pad, pool)
    n, height, width, channels = which.shape
    weight_part = torch.empty(_PROGRAMS, meta["TAPS"], channels, device=x.device)
    bias_part = torch.empty(channels, _PROGRAMS, device=x.device)
    m = n * height * width
    _backward_kernel[(_PROGRAMS,)](
        x.contiguous(), gradient.contiguous(), which, weight_part, bias_part, m,
        STEPS=triton.cdiv(m, _BACKWARD["BLOCK"] * _PROGRAMS), **meta, **_BACKWARD,
    )  # fmt: skip
    taps = weight_part.sum(dim=0)[: 9 * x.shape[1]]
    return taps.t().contiguous().view(weight.shape), bias_part.sum(dim=1)


@_backward.register_fake
def _(
    gradient: Tensor, x: Tensor, weight: Tensor, which: Tensor, pad: int, pool: int
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(weight), weight.new_empty(weight.shape[0])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, _, ctx.pad, ctx.pool = inputs
    ctx.save_for_backward(x, weight, output[1])


def _differentiate(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Any, ...]:
    weight_gradient, bias_gradient = _backward(gradient, *ctx.saved_tensors, ctx.pad, ctx.pool)
    return None, weight_gradient, bias_gradient, None, None


_forward.register_autograd(_differentiate, setup_context=_save)


def convolve_pixels(x: Tensor, weight: Tensor, bias: Tensor, pad: int, pool: int) -> Tensor:
    """Convolve, rectify and pool; the result is (n, height, width, channels)."""
    return _forward(x, weight, bias, pad, pool)[0]
