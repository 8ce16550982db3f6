"""Arrays as compact bytes: single precision, compressed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["pack_arrays", "unpack_arrays"]

Array = NDArray[Any]


def pack_arrays(arrays: Mapping[str, Array]) -> bytes:
    """Pack named arrays of numbers, as single precision.

    Parameters
    ----------
    arrays : mapping from str to array

    Notes
    -----
    A line of JSON with names and shapes, then the compressed numbers, all first bytes before all
    second bytes and so on: neighbours on a curve share their high bytes, which compresses better.

    Examples
    --------
    >>> packed = pack_arrays({"loss": np.array([0.5, 0.25])})
    >>> unpack_arrays(packed)
    {'loss': array([0.5 , 0.25], dtype=float32)}
    """
    shapes = {name: np.shape(array) for name, array in arrays.items()}
    flat = [np.asarray(array, dtype="<f4").ravel() for array in arrays.values()]
    numbers = np.concatenate(flat) if flat else np.empty(0, "<f4")
    planes = np.ascontiguousarray(numbers.view(np.uint8).reshape(-1, 4).T)
    return json.dumps(shapes).encode() + b"\n" + zlib.compress(planes.tobytes(), level=9)


def unpack_arrays(packed: bytes) -> dict[str, Array]:
    """Read back what `pack_arrays` wrote."""
    head, _, body = packed.partition(b"\n")
    planes = np.frombuffer(zlib.decompress(body), dtype=np.uint8).reshape(4, -1)
    numbers = np.ascontiguousarray(planes.T).view("<f4").ravel()
    shapes = {name: tuple(shape) for name, shape in json.loads(head).items()}
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes.values()])
    parts = np.split(numbers, ends[:-1]) if shapes else []
    return {
        name: part.reshape(shape).astype(np.float32)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
