"""The type of arrays of any numbers."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
