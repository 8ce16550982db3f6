"""Does any value of a column come twice? Asked in one pass and in little memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.tables.codes import SPREAD

__all__ = ["RepeatFinder"]

Array = NDArray[Any]
MAX_KEPT = 65_536


class RepeatFinder:
    """Looks for a value that comes twice, among all values or, if they are many, a share of them.

    Which values are kept depends on the value alone: of those kept, every repetition is seen.

    Examples
    --------
    >>> finder = RepeatFinder()
    >>> finder.add(np.array([1.0, 2.0])); finder.found
    False
    >>> finder.add(np.array([2.0, 3.0])); finder.found
    True
    """

    def __init__(self) -> None:
        self.found = False
        self._kept, self._bits = np.empty(0), 0

    def add(self, values: Array) -> None:
        """Look at some more values."""
        kept = np.sort(np.concatenate([self._kept, self._chosen(values)]))
        self.found |= bool((kept[1:] == kept[:-1]).any())
        self._kept = kept
        while len(self._kept) > MAX_KEPT:
            self._bits += 1
            self._kept = self._chosen(self._kept)

    def _chosen(self, values: Array) -> Array:
        if not self._bits:
            return values
        mixed = (values.view(np.uint64) ^ (values.view(np.uint64) >> np.uint64(32))) * SPREAD
        return values[mixed >> np.uint64(64 - self._bits) == 0]
