"""Seeds derived from names: a trial is the same alone, in a stack, or on another machine."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


def derive_seed(*names: object) -> int:
    """Derive a 63-bit seed from names. The same names give the same seed on every machine.

    Names are compared by their ``repr``, so ``1`` and ``"1"`` differ; a numpy scalar counts as its
    Python value.
    """
    digest = hashlib.sha256(repr(_plain(names)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def _plain(name: object) -> object:
    """Replace numpy scalars by Python values."""
    if type(name) is tuple:  # not a named tuple, which has its own `repr`
        return tuple(map(_plain, name))
    return name.item() if isinstance(name, np.generic) else name


def numpy_generator(*names: object) -> np.random.Generator:
    """Return an independent numpy generator for these names."""
    return np.random.default_rng(derive_seed(*names))


def draw_seed(random_state: Any) -> int:
    """Turn `random_state` into an integer seed; an integer is returned unchanged."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise ValueError(
        "random_state must be an integer, a numpy RandomState or Generator, or None, "
        f"got {random_state!r}."
    )
