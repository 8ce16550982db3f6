"""The paper's architectures: those of the library, and large CNNs and CNNs without dropout."""

from __future__ import annotations

from functools import partial

from torch import nn

from unbag.models import MODELS, KeyedDropout, ModelBuilder, get_model
from unbag.models.nets import convolution, dense, feature_size, image_shape, small_cnn

__all__ = ["NETS", "get_net", "large_cnn"]


def large_cnn(
    input_shape: tuple[int, ...], n_outputs: int, *, padding: int = 0, dropout: bool = True
) -> nn.Module:
    """Two blocks of two convolutions, and two dense layers, with dropout throughout.

    The paper does not state its padding, and its code has none; in the well-known Keras example
    that this architecture comes from, the first convolution of a block keeps the image's size.
    """
    channels = image_shape(input_shape)[0]
    features = nn.Sequential(
        convolution(channels, 32, padding=padding),
        convolution(32, 32, pool=2),
        KeyedDropout(0.25 * dropout),
        convolution(32, 64, padding=padding),
        convolution(64, 64, pool=2),
        KeyedDropout(0.25 * dropout),
    )
    return nn.Sequential(
        features,
        nn.Flatten(),
        dense(feature_size(features, input_shape), 512),
        nn.ReLU(),
        KeyedDropout(0.5 * dropout),
        dense(512, n_outputs),
    )


NETS: dict[str, ModelBuilder] = MODELS | {
    "cnn_large": large_cnn,
    "cnn_padded": partial(large_cnn, padding=1),
    "cnn_small_plain": partial(small_cnn, dropout=False),
    "cnn_large_plain": partial(large_cnn, dropout=False),
}


def get_net(model: str | ModelBuilder) -> ModelBuilder:
    """Look a builder up by name, or pass a function."""
    return get_model(NETS.get(model, model) if isinstance(model, str) else model)
