"""Rows on disk, part by part."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbag.errors import TableError

__all__ = ["RowFiles", "Scratch"]

Array = NDArray[Any]


class RowFiles:
    """Features and codes of rows in two files, where every part has a place of its own.

    Parameters
    ----------
    sizes : array of shape (n_parts,)
        Rows of each part.
    n_features : int
    folder : path, optional
        Where the files go; None takes the system's place for temporary files.

    Examples
    --------
    >>> files = RowFiles(np.array([1, 2]), 1)
    >>> rows = [(1, [[5]], [7]), (0, [[6]], [8]), (1, [[9]], [3])]
    >>> files.fill([(part, np.float32(X), np.int32(codes))] for part, X, codes in rows)
    >>> [(X.tolist(), codes.tolist()) for X, codes in files.read(1)]
    [([[5.0], [9.0]], [7, 3])]
    >>> files.close()
    """

    def __init__(self, sizes: Array, n_features: int, folder: str | Path | None = None) -> None:
        self.n_features = n_features
        self.stops = np.cumsum(sizes, dtype=np.int64)
        self.starts = self.stops - sizes
        self._folder = tempfile.TemporaryDirectory(dir=folder, prefix="unbag-")
        self._features, self._codes = (Path(self._folder.name) / n for n in ("features", "codes"))

    def fill(self, chunks: Iterator[Sequence[tuple[int, Array, Array]]]) -> None:
        """Write all rows, given as some of a part, with features and codes, at a time."""
        places = self.starts.copy()
        with self._features.open("wb") as features, self._codes.open("wb") as codes:
            _reserve(features.fileno(), 4 * self.n_features * int(self.stops[-1]))
            _reserve(codes.fileno(), 4 * int(self.stops[-1]))
            for part, X, some in chain.from_iterable(chunks):
                features.seek(4 * self.n_features * places[part])
                features.write(X.data)
                codes.seek(4 * places[part])
                codes.write(some.data)
                places[part] += len(some)
        if (places != self.stops).any():
            raise TableError("The table changed while it was read: a bag has another size.")

    def read(self, part: int, *, n_rows: int | None = None) -> Iterator[tuple[Array, Array]]:
        """Features and codes of a part, all at once or some rows at a time."""
        start, stop = int(self.starts[part]), int(self.stops[part])
        step = n_rows or stop - start
        for first in range(start, stop, step):
            n, width = min(step, stop - first), self.n_features
            X = np.fromfile(self._features, np.float32, n * width, offset=4 * first * width)
            yield X.reshape(n, width), np.fromfile(self._codes, np.int32, n, offset=4 * first)

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()


def _reserve(file: int, n_bytes: int) -> None:
    """Claim the place of a file on disk, where the system can: then writing takes less time."""
    if n_bytes and hasattr(os, "posix_fallocate"):
        with suppress(OSError):
            os.posix_fallocate(file, 0, n_bytes)


class Scratch:
    """Memory for one array at a time; it is kept, because fresh pages cost more than copying.

    Examples
    --------
    >>> scratch = Scratch()
    >>> scratch.array(2, 3).shape, scratch.array(1, 4).shape
    ((2, 3), (1, 4))
    """

    def __init__(self) -> None:
        self._memory = np.empty(0, dtype=np.float32)

    def array(self, *shape: int, order: Literal["C", "F"] = "C") -> Array:
        """An array of any values, in the memory of the last one if that is enough."""
        if math.prod(shape) > len(self._memory):
            self._memory = np.empty(math.prod(shape), dtype=np.float32)
        return self._memory[: math.prod(shape)].reshape(shape, order=order)
