"""Types of arrays of any numbers, alone and by name."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
