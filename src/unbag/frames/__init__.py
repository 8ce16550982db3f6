"""Frames: columns of numbers, text, dates and missing values become numeric features."""

from unbag.frames.encoder import TableEncoder, frame_encoder

__all__ = ["TableEncoder", "frame_encoder"]
