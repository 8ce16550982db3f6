"""Frames: columns of numbers, text, dates and missing values become numeric features."""

from unbag.frames.chunks import Chunk, as_arrow, is_frame
from unbag.frames.encoder import TableEncoder, frame_encoder
from unbag.frames.features import Column

__all__ = ["Chunk", "Column", "TableEncoder", "as_arrow", "frame_encoder", "is_frame"]
