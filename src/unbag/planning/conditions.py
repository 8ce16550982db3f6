"""Conditions on the arguments of plans and certificates."""

from __future__ import annotations

from unbag.errors import ConditionError


def require(holds: bool, message: str) -> None:
    """Raise `ConditionError` unless a condition holds."""
    if not holds:
        raise ConditionError(message)


def require_probability(name: str, value: float, *, closed: bool = False) -> None:
    """Require a number in (0, 1), or in [0, 1] when `closed`."""
    inside = 0 <= value <= 1 if closed else 0 < value < 1
    interval = "[0, 1]" if closed else "(0, 1)"
    require(inside, f"`{name}` must lie in {interval}, got {value!r}.")


def require_whole(name: str, value: float, *, least: int = 1) -> None:
    """Require a whole number of at least `least`."""
    whole = value >= least and value % 1 == 0
    require(whole, f"`{name}` must be a whole number of at least {least}, got {value!r}.")


def check_sample(n_bags: int, vc_dimension: int, confidence: float) -> None:
    """Check what every bound for a VC class is given."""
    require_whole("n_bags", n_bags)
    require_whole("vc_dimension", vc_dimension)
    require_probability("confidence", confidence)
