"""Architectures by name, and their layers."""

from unbag.models.averaging import AveragedNet, BlendedNet, LinearScores
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
from unbag.models.radial_units import RadialUnits

__all__ = [
    "KEY_SUFFIX",
    "MODELS",
    "AveragedNet",
    "BlendedNet",
    "KeyedDropout",
    "LinearScores",
    "ModelBuilder",
    "Moments",
    "RadialUnits",
    "Standardize",
    "advance_key",
    "get_model",
    "join_moments",
    "moments_of",
]
