"""Readers of the formats image data sets come in; none of them runs code found in a file."""

from __future__ import annotations

import gzip
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag_paper.errors import DatasetError

__all__ = [
    "read_arrays",
    "read_bytes",
    "read_cifar_binary",
    "read_cifar_python",
    "read_idx",
    "read_mosaic",
]

Array = NDArray[Any]

_GZIP_MAGIC = b"\x1f\x8b"
_IDX_BYTES = 8  # the idx code of unsigned bytes, the only type these data sets use
_CIFAR_SHAPE = (3, 32, 32)
_CIFAR_RECORD = 1 + 3 * 32 * 32


def read_bytes(path: Path) -> bytes:
    """Contents of a file, unpacked if it is gzipped, whatever its name says."""
    raw = path.read_bytes()
    try:
        return gzip.decompress(raw) if raw[:2] == _GZIP_MAGIC else raw
    except (EOFError, OSError) as error:
        raise DatasetError(f"{path} is not a whole gzip file ({error}). Fetch it again.") from None


def read_idx(path: Path) -> Array:
    """Read an idx file of bytes, plain or gzipped.

    Parameters
    ----------
    path : Path

    Returns
    -------
    array of uint8
        With the shape the file states.
    """
    raw = read_bytes(path)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != _IDX_BYTES:
        raise DatasetError(f"{path} is not an idx file of bytes: it begins with {raw[:4]!r}.")
    start = 4 + 4 * raw[3]
    shape = tuple(np.frombuffer(raw[4:start], dtype=">u4").tolist())
    if len(raw) - start != np.prod(shape, dtype=int):
        raise DatasetError(
            f"{path} states the shape {shape} but holds {len(raw) - start} bytes. Fetch it again."
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape).copy()


def read_cifar_binary(path: Path) -> tuple[Array, Array]:
    """Read a CIFAR-10 binary batch: records of one label byte and 3072 bytes in RGB planes.

    Returns
    -------
    images : array of uint8 of shape (n, 3, 32, 32)
    labels : array of uint8 of shape (n,)
    """
    raw = np.frombuffer(read_bytes(path), dtype=np.uint8)
    if len(raw) == 0 or len(raw) % _CIFAR_RECORD:
        raise DatasetError(
            f"{path} holds {len(raw)} bytes, which is not a number of {_CIFAR_RECORD}-byte records."
        )
    records = raw.reshape(-1, _CIFAR_RECORD)
    return records[:, 1:].reshape(-1, *_CIFAR_SHAPE).copy(), records[:, 0].copy()


def read_cifar_python(path: Path) -> tuple[Array, Array]:
    """Read a CIFAR-10 python batch, a pickle, allowing nothing in it but arrays and plain values.

    Returns
    -------
    images : array of uint8 of shape (n, 3, 32, 32)
    labels : array of uint8 of shape (n,)
    """
    batch = _ArrayUnpickler(io.BytesIO(read_bytes(path)), path).read()
    batch = {_text(name): value for name, value in batch.items()} if isinstance(batch, dict) else {}
    images, labels = batch.get("data"), batch.get("labels")
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or labels is None:
        raise DatasetError(f"{path} is not a CIFAR-10 python batch: no 'data' bytes and 'labels'.")
    return images.reshape(-1, *_CIFAR_SHAPE), np.asarray(labels, dtype=np.uint8)


def read_mosaic(path: Path) -> tuple[Array, Array]:
    """Read a batch packed as one lossless picture, 100 images of 32 x 32 a row, labels beside it.

    ``paper/tools/pack_cifar.py`` writes it: two thirds of the size of the binary batches.

    Returns
    -------
    images : array of uint8 of shape (n, 3, 32, 32)
    labels : array of uint8 of shape (n,)
    """
    from PIL import Image, UnidentifiedImageError

    labels = np.load(path.with_suffix(".npy"), allow_pickle=False)
    try:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("RGB"))
    except (UnidentifiedImageError, OSError) as error:
        raise DatasetError(f"{path} is not a whole picture ({error}). Pack it again.") from None
    height, width = (side // 32 for side in pixels.shape[:2])
    tiles = pixels.reshape(height, 32, width, 32, 3).transpose(0, 2, 4, 1, 3)
    if height * width < len(labels):
        raise DatasetError(f"{path} holds {height * width} images, but {len(labels)} labels.")
    return tiles.reshape(-1, *_CIFAR_SHAPE)[: len(labels)], labels.astype(np.uint8)


def read_arrays(path: Path) -> tuple[Array, Array]:
    """Read ``images`` and ``labels`` of an npz file.

    Returns
    -------
    images : array of uint8 of shape (n, channels, height, width)
    labels : array of uint8 of shape (n,)
    """
    with np.load(path, allow_pickle=False) as arrays:
        if not {"images", "labels"} <= set(arrays):
            raise DatasetError(f"{path} must hold 'images' and 'labels', got {sorted(arrays)}.")
        images, labels = arrays["images"], arrays["labels"]
    if images.dtype != np.uint8 or images.ndim != 4:
        raise DatasetError(
            f"{path}: images must be bytes of shape (n, channels, height, width), got "
            f"{images.dtype} of shape {images.shape}."
        )
    return images, labels.astype(np.uint8)


def _text(name: Any) -> Any:
    return name.decode("ascii", "replace") if isinstance(name, bytes) else name


# What a pickled array refers to. numpy 2 moved the function, so an array is asked for it.
_REBUILD = np.empty(0).__reduce__()[0]
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy._core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArrayUnpickler(pickle.Unpickler):
    """Builds numpy arrays out of a pickle and refuses every other class or function."""

    def __init__(self, file: io.BytesIO, path: Path) -> None:
        super().__init__(file, encoding="bytes")
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        """Look up one of the four allowed names."""
        if (module, name) not in _ALLOWED:
            raise DatasetError(
                f"{self.path} asks for {module}.{name}, which no CIFAR-10 batch needs. It was not "
                "read: it may be made to run code."
            )
        return _ALLOWED[module, name]

    def read(self) -> Any:
        """The pickled object."""
        try:
            return self.load()
        except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError) as error:
            if isinstance(error, DatasetError):
                raise
            raise DatasetError(f"{self.path} is not a CIFAR-10 python batch: {error}.") from None
