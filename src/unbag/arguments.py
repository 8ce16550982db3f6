"""Checks of single arguments. Each error names the argument, what was wanted and what came."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise if a value is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}.")


def check_device(device: Any) -> None:
    """Raise if a device is unknown to torch or not available on this machine."""
    try:
        torch.empty(0, device=torch.device(device))
    except (AssertionError, RuntimeError, TypeError) as error:  # torch raises each of them
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"device must be one that torch can use here, got {device!r}: {reason}. "
            "'cpu' works everywhere."
        ) from error


def check_whole(name: str, value: Any, *, optional: bool = False, least: int = 1) -> None:
    """Raise unless a value is an integer of at least `least`; None is accepted if `optional`."""
    if optional and value is None:
        return
    if not isinstance(value, Integral) or value < least:
        words = " or None" if optional else ""
        raise ValueError(
            f"{name} must be a whole number of at least {least}{words}, got {value!r}."
        )


def check_share(name: str, value: float) -> None:
    """Raise unless a value is strictly between 0 and 1; percentages are a common mistake."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}.")


def check_some(name: str, value: Sequence[Any]) -> None:
    """Raise if a sequence is empty."""
    if not len(value):
        raise ValueError(f"{name} must hold at least one value, got {value!r}.")


def check_names(name: str, value: Any) -> None:
    """Raise if a single string is passed for a tuple of names: each letter would become a name."""
    if isinstance(value, str):
        raise ValueError(f"{name} must be a tuple of names, got {value!r}. Write ({value!r},).")
