"""Convolution of features, for the inner layers of a net.

cuDNN multiplies; what surrounds the product, and takes as long, is fused: one kernel adds the bias,
rectifies and pools, one undoes it and adds up the bias' gradient. Where a layer widens, cuDNN has
no fast gradient of the weights, and a third kernel computes it, a row of the stencil at a time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["convolve_features"]

_BLOCK = 32
_PROGRAMS = 1056  # eight for each of the 132 multiprocessors
_WEIGHT_BLOCK, _WEIGHT_PROGRAMS = 64, 132


# `which` names the maximum of each window, or none of its places where the ReLU is off.
@triton.jit
def _pool_kernel(value, bias, out, which, n, rows, columns, height, width,
                 C: tl.constexpr, POOL: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = (m < n)[:, None]
    channel = tl.arange(0, C)[None, :]
    image_row = m // (height * width) * rows + m // width % height * POOL
    corner = image_row * columns + m % width * POOL
    best = tl.full((BLOCK, C), -float("inf"), tl.float32)
    chosen = tl.zeros((BLOCK, C), tl.int32)
    for s in tl.static_range(POOL * POOL):
        place = (corner + s // POOL * columns + s % POOL)[:, None] * C + channel
        here = tl.load(value + place, mask=valid, other=0.0).to(tl.float32)
        chosen = tl.where(here > best, s, chosen)
        best = tl.maximum(here, best)
    best += tl.load(bias + channel)
    chosen = tl.where(best > 0, chosen, POOL * POOL)
    place = m[:, None] * C + channel
    tl.store(out + place, tl.maximum(best, 0.0).to(tl.bfloat16), mask=valid)
    tl.store(which + place, chosen.to(tl.uint8), mask=valid)


@triton.jit
def _unpool_kernel(gradient, which, out, bias_part, n, rows, columns, height, width,
                   C: tl.constexpr, POOL: tl.constexpr, BLOCK: tl.constexpr,
                   STEPS: tl.constexpr):  # fmt: skip
    """Windows that stand out at the lower and right edge were not pooled, and get zeros."""
    program = tl.program_id(0)
    channel = tl.arange(0, C)
    bias_sum = tl.zeros((C,), tl.float32)
    down, across = (rows + POOL - 1) // POOL, (columns + POOL - 1) // POOL
    for step in range(STEPS):
        m = (step * tl.num_programs(0) + program) * BLOCK + tl.arange(0, BLOCK)
        image, i, j = m // (down * across), m // across % down, m % across
        pooled = ((m < n) & (i < height) & (j < width))[:, None]
        place = ((image * height + i) * width + j)[:, None] * C + channel[None, :]
        g = tl.load(gradient + place, mask=pooled, other=0.0).to(tl.float32)
        chosen = tl.load(which + place, mask=pooled, other=POOL * POOL).to(tl.int32)
        bias_sum += tl.sum(tl.where(chosen < POOL * POOL, g, 0.0), axis=0)
        for s in tl.static_range(POOL * POOL):
            row, column = i * POOL + s // POOL, j * POOL + s % POOL
            inside = ((m < n) & (row < rows) & (column < columns))[:, None]
            place = ((image * rows + row) * columns + column)[:, None] * C + channel[None, :]
            share = tl.where(chosen == s, g, 0.0)
            tl.store(out + place, share.to(tl.bfloat16), mask=inside)
    tl.store(bias_part + channel * tl.num_programs(0) + program, bias_sum)


@triton.jit
def _weight_kernel(x, gradient, part, n, rows, columns, height, width,
                   C: tl.constexpr, OUT: tl.constexpr, PAD: tl.constexpr, WIDE: tl.constexpr,
                   BLOCK: tl.constexpr, STEPS: tl.constexpr):  # fmt: skip
    """Gradient of one row of the stencil, whose three pixels lie side by side in memory."""
    program, tap_row = tl.program_id(0), tl.program_id(1)
    wide, out = tl.arange(0, WIDE), tl.arange(0, OUT)
    total = tl.zeros((WIDE, OUT), tl.float32)
    for step in range(STEPS):
        m = (step * tl.num_programs(0) + program) * BLOCK + tl.arange(0, BLOCK)
        valid = m < n
        row = m // width % height + tap_row - PAD
        column = (m % width - PAD)[:, None] + (wide // C)[None, :]
        inside = (column >= 0) & (column < columns) & (wide < 3 * C)[None, :]
        inside = inside & (valid & (row >= 0) & (row < rows))[:, None]
        first = (m // (height * width) * rows + row) * columns + m % width - PAD
        patch = tl.load(x + first[:, None] * C + wide[None, :], mask=inside, other=0.0)
        place = m[:, None] * OUT + out[None, :]
        g = tl.load(gradient + place, mask=valid[:, None], other=0.0)
        total = tl.dot(tl.trans(patch), g, total)
    place = ((program * 3 + tap_row) * 3 * C + wide[:, None]) * OUT + out[None, :]
    tl.store(part + place, total, mask=(wide < 3 * C)[:, None])


def _pool(value: Tensor, bias: Tensor, pool: int) -> tuple[Tensor, Tensor]:
    """Bias, ReLU and maximum of (n, rows, columns, channels); and which place of a window it is."""
    n, rows, columns, channels = value.shape
    shape = n, rows // pool, columns // pool, channels
    out = torch.empty(shape, dtype=torch.bfloat16, device=value.device)
    which = torch.empty(shape, dtype=torch.uint8, device=value.device)
    m = out.numel() // channels
    _pool_kernel[(triton.cdiv(m, _BLOCK),)](
        value, bias, out, which, m, rows, columns, *shape[1:3], C=channels, POOL=pool, BLOCK=_BLOCK
    )
    return out, which


def _unpool(
    gradient: Tensor, which: Tensor, rows: int, columns: int, pool: int
) -> tuple[Tensor, Tensor]:
    """Gradients with respect to value and bias of `_pool`."""
    n, height, width, channels = which.shape
    out = torch.empty((n, rows, columns, channels), dtype=torch.bfloat16, device=which.device)
    bias_part = torch.empty((channels, _PROGRAMS), device=which.device)
    m = n * triton.cdiv(rows, pool) * triton.cdiv(columns, pool)
    _unpool_kernel[(_PROGRAMS,)](
        gradient.contiguous(), which, out, bias_part, m, rows, columns, height, width,
        C=channels, POOL=pool, BLOCK=_BLOCK, STEPS=triton.cdiv(m, _BLOCK * _PROGRAMS),
    )  # fmt: skip
    return out, bias_part.sum(dim=1)


def _weight_gradient(x: Tensor, gradient: Tensor, pad: int) -> Tensor:
    """Gradient of the weights from (n, rows, columns, inputs) and (n, height, width, outputs)."""
    _, rows, columns, inputs = x.shape
    n, height, width, outputs = gradient.shape
    m = n * height * width
    part = torch.empty((_WEIGHT_PROGRAMS, 3, 3, inputs, outputs), device=x.device)
    _weight_kernel[(_WEIGHT_PROGRAMS, 3)](
        x, gradient, part, m, rows, columns, height, width,
        C=inputs, OUT=outputs, PAD=pad, WIDE=triton.next_power_of_2(3 * inputs),
        BLOCK=_WEIGHT_BLOCK, STEPS=triton.cdiv(m, _WEIGHT_BLOCK * _WEIGHT_PROGRAMS),
    )  # fmt: skip
    return part.sum(dim=0).permute(3, 2, 0, 1).contiguous()


def _channels_last(tensor: Tensor) -> Tensor:
    """In bfloat16, with channels last in memory, as tensor cores want it."""
    return tensor.to(torch.bfloat16, memory_format=torch.channels_last)


@torch.library.custom_op("unbag::convolve_features", mutates_args=())
def _forward(x: Tensor, weight: Tensor, bias: Tensor, pad: int, pool: int) -> tuple[Tensor, Tensor]:
    value = torch.conv2d(_channels_last(x), _channels_last(weight), padding=pad)
    return _pool(value.permute(0, 2, 3, 1).contiguous(), bias, pool)


@_forward.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, pad: int, pool: int) -> tuple[Tensor, Tensor]:
    height, width = ((side + 2 * pad - 2) // pool for side in x.shape[-2:])
    shape = x.shape[0], height, width, weight.shape[0]
    return x.new_empty(shape, dtype=torch.bfloat16), x.new_empty(shape, dtype=torch.uint8)


@torch.library.custom_op("unbag::convolve_features_backward", mutates_args=())
def _backward(
    gradient: Tensor, x: Tensor, weight: Tensor, which: Tensor, pad: int, pool: int
) -> tuple[Tensor, Tensor, Tensor]:
    features = _channels_last(x)
    rows, columns = (side + 2 * pad - 2 for side in x.shape[-2:])
    g, bias_gradient = _unpool(gradient, which, rows, columns, pool)
    widens = x.shape[1] < weight.shape[0]
    x_gradient, weight_gradient, _ = torch.ops.aten.convolution_backward(
        g.permute(0, 3, 1, 2), features, _channels_last(weight), None, [1, 1], [pad, pad], [1, 1],
        False, [0, 0], 1, [True, not widens, False],
    )  # fmt: skip
    if widens:
        weight_gradient = _weight_gradient(features.permute(0, 2, 3, 1), g, pad)
    x_gradient = x_gradient.to(x.dtype, memory_format=torch.channels_last)
    return x_gradient, weight_gradient.float().contiguous(), bias_gradient


@_backward.register_fake
def _(
    gradient: Tensor, x: Tensor, weight: Tensor, which: Tensor, pad: int, pool: int
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        torch.empty_like(x, memory_format=torch.channels_last),
        torch.empty_like(weight, memory_format=torch.contiguous_format),
        weight.new_empty(weight.shape[0]),
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, _, ctx.pad, ctx.pool = inputs
    ctx.save_for_backward(x, weight, output[1])


def _differentiate(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Any, ...]:
    return *_backward(gradient, *ctx.saved_tensors, ctx.pad, ctx.pool), None, None


_forward.register_autograd(_differentiate, setup_context=_save)


def convolve_features(x: Tensor, weight: Tensor, bias: Tensor, pad: int, pool: int) -> Tensor:
    """Convolve, rectify and pool; the result is (n, height, width, channels)."""
    return _forward(x, weight, bias, pad, pool)[0]
