"""Checks of single arguments: each error names the argument, what was wanted and what came."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch

__all__ = [
    "check_choice",
    "check_device",
    "check_names",
    "check_share",
    "check_some",
    "check_whole",
]


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse a word that is not among the choices.

    Examples
    --------
    >>> check_choice("schedule", "linear", ("constant", "cosine"))
    Traceback (most recent call last):
    ...
    ValueError: schedule must be 'constant' or 'cosine', got 'linear'.
    """
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}.")


def check_device(device: Any) -> None:
    """Refuse what torch does not know as a device, or cannot use on this machine."""
    try:
        torch.empty(0, device=torch.device(device))
    except (AssertionError, RuntimeError, TypeError) as error:  # torch raises each of them
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"device must be one that torch can use here, got {device!r}: {reason}. "
            "'cpu' works everywhere."
        ) from error


def check_whole(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse what is not a whole number of at least 1; None passes if `optional`."""
    if optional and value is None:
        return
    if not isinstance(value, Integral) or value < 1:
        words = " or None" if optional else ""
        raise ValueError(f"{name} must be a whole number of at least 1{words}, got {value!r}.")


def check_share(name: str, value: float) -> None:
    """Refuse what does not lie between 0 and 1; percentages are a common mistake."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}.")


def check_some(name: str, value: Sequence[Any]) -> None:
    """Refuse an empty sequence."""
    if not len(value):
        raise ValueError(f"{name} must hold at least one, got {value!r}.")


def check_names(name: str, value: Any) -> None:
    """Refuse a single name where several may stand: its letters would be taken for names."""
    if isinstance(value, str):
        raise ValueError(f"{name} must be a tuple of names, got {value!r}. Write ({value!r},).")
