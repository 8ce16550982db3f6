"""Architectures as functions of the input shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d

from unbag.models.dropout import KeyedDropout
from unbag.models.resnet import ResNet

ModelBuilder = Callable[[tuple[int, ...], int], nn.Module]
Moments = tuple[int, Tensor, Tensor]
"""Number of instances, mean of each feature, and sum of squares about it."""


def moments_of(chunk: Tensor) -> Moments:
    """Moments of instances in double precision; squares of large features overflow single."""
    variance, mean = torch.var_mean(chunk.flatten(1).cpu().double(), dim=0, correction=0)
    return len(chunk), mean, variance * len(chunk)


def join_moments(parts: Iterable[Moments]) -> Moments:
    """Moments of all instances from those of parts (Chan's update)."""
    (count, mean, spread), *others = parts
    for size, part_mean, part_spread in others:
        total, gap = count + size, part_mean - mean
        spread = spread + part_spread + gap.square() * (count * size / total)
        mean = mean + gap * (size / total)
        count = total
    return count, mean, spread


class Standardize(nn.Module):
    """Subtract the training mean and divide by the training deviation of each feature."""

    mean: Tensor
    scale: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def set(self, moments: Moments) -> None:
        """Set mean and deviation; a constant feature keeps scale 1."""
        count, mean, spread = moments
        deviation = (spread / count).sqrt()
        least = 1e-6 * mean.abs() + torch.finfo(self.scale.dtype).tiny
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(deviation > least, deviation, 1.0))

    def forward(self, x: Tensor) -> Tensor:
        """Standardise a batch."""
        return (x - self.mean) / self.scale


class Dense(nn.Linear):
    """`torch.nn.Linear` on a batch of vectors, with the weights as the left factor.

    The product is the same, but for stacked models on shared inputs the weights fold into one large
    matrix, and so do their gradients.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Multiply and add."""
        return (self.weight @ x.t()).t() + self.bias


class Convolution(nn.Conv2d):
    """A 3 x 3 convolution, its ReLU, and max pooling in windows of 2 x 2 if `pool` is 2."""

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


def linear(input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """One dense layer."""
    return nn.Sequential(nn.Flatten(), dense(_size(input_shape), n_outputs))


def two_layer(input_shape: tuple[int, ...], n_outputs: int, *, width: int) -> nn.Module:
    """One hidden layer of ReLU units."""
    return nn.Sequential(
        nn.Flatten(), dense(_size(input_shape), width), nn.ReLU(), dense(width, n_outputs)
    )


def tabular(input_shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    """One hidden layer of ReLU units on standardised features, with dropout before both layers.

    Proportions are few and easily memorised; the two rates were the best of a small search on
    splits of the digits that no reported number uses.
    """
    n_features = _size(input_shape)
    return nn.Sequential(
        nn.Flatten(),
        Standardize(n_features),
        KeyedDropout(0.2),
        dense(n_features, 100),
        nn.ReLU(),
        KeyedDropout(0.5),
        dense(100, n_outputs),
    )


def small_cnn(input_shape: tuple[int, ...], n_outputs: int, *, dropout: bool = True) -> nn.Module:
    """Two convolutions, each pooled, and a dense layer behind dropout."""
    channels = image_shape(input_shape)[0]
    features = nn.Sequential(convolution(channels, 32, pool=2), convolution(32, 64, pool=2))
    return nn.Sequential(
        features,
        nn.Flatten(),
        KeyedDropout(0.5 * dropout),
        dense(feature_size(features, input_shape), n_outputs),
    )


def residual_net(
    input_shape: tuple[int, ...], n_outputs: int, *, widths: Sequence[int], n_blocks: int
) -> nn.Module:
    """A `ResNet` for images of this shape."""
    return ResNet(image_shape(input_shape)[0], n_outputs, widths=widths, n_blocks=n_blocks)


MODELS: dict[str, ModelBuilder] = {
    "linear": linear,
    "mlp100": partial(two_layer, width=100),
    "mlp1000": partial(two_layer, width=1000),
    "cnn_small": small_cnn,
    "mlp": tabular,
    "resnet18": partial(residual_net, widths=(64, 128, 256, 512), n_blocks=2),
    "wrn16_2": partial(residual_net, widths=(32, 64, 128), n_blocks=2),
    "wrn28_2": partial(residual_net, widths=(32, 64, 128), n_blocks=4),
}


def get_model(model: str | ModelBuilder | Any) -> ModelBuilder:
    """Find a builder by name, or return a function ``(input_shape, n_outputs) -> nn.Module``."""
    if isinstance(model, nn.Module):
        raise TypeError(
            "model must be a function (input_shape, n_outputs) -> torch.nn.Module, got a net. "
            "Every training starts from a new one: pass the function, or the class, that makes it."
        )
    if callable(model):
        return model
    if model not in MODELS:
        raise ValueError(f"model must be one of {sorted(MODELS)} or a function, got {model!r}.")
    return MODELS[model]


def dense(n_inputs: int, n_outputs: int) -> nn.Linear:
    return _glorot(Dense(n_inputs, n_outputs))


def convolution(n_inputs: int, n_outputs: int, *, padding: int = 0, pool: int = 1) -> nn.Module:
    return _glorot(Convolution(n_inputs, n_outputs, padding=padding, pool=pool))


def _glorot(layer: Any) -> Any:
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _size(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())


def image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) != 3:
        raise ValueError(
            f"A convolutional net needs images of shape (channels, height, width), got {shape}. "
            "Reshape X, or use model='mlp'."
        )
    return shape


def feature_size(features: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Number of outputs of the convolutions per image."""
    try:
        with torch.no_grad():
            size = features.eval()(torch.zeros(1, *input_shape)).numel()
    except RuntimeError:  # a kernel larger than what earlier layers left
        size = 0
    if not size:
        pixels = " x ".join(map(str, input_shape[1:]))
        raise ValueError(f"Images of {pixels} pixels are too small for this convolutional net.")
    return size
