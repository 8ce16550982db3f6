"""The five architectures of the paper and the tabular net."""

from unbag.models.dropout import KEY_SUFFIX, KeyedDropout, advance_key
from unbag.models.nets import (
    MODELS,
    ModelBuilder,
    Moments,
    Standardize,
    get_model,
    join_moments,
    moments_of,
)

__all__ = [
    "KEY_SUFFIX",
    "MODELS",
    "KeyedDropout",
    "ModelBuilder",
    "Moments",
    "Standardize",
    "advance_key",
    "get_model",
    "join_moments",
    "moments_of",
]
