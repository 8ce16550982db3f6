"""The five architectures of the paper and the tabular net."""

from unbag.models.dropout import KEY_SUFFIX, KeyedDropout, advance_key
from unbag.models.nets import MODELS, ModelBuilder, Standardize, get_model

__all__ = [
    "KEY_SUFFIX",
    "MODELS",
    "KeyedDropout",
    "ModelBuilder",
    "Standardize",
    "advance_key",
    "get_model",
]
