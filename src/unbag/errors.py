"""Every exception and warning the library raises."""

from __future__ import annotations

__all__ = [
    "BagDataError",
    "BagDataWarning",
    "ConditionError",
    "ConditionWarning",
    "SplitBagsWarning",
    "StackingWarning",
    "UnbagError",
    "UnbagWarning",
]


class UnbagError(Exception):
    """Base of every error raised on purpose; catch this one to catch them all."""


class BagDataError(UnbagError, ValueError):
    """The data cannot be read as bags: the message names the argument and the first bad bag."""


class ConditionError(UnbagError, ValueError):
    """A formula or a minimiser was asked about something it has no meaning for."""


class UnbagWarning(UserWarning):
    """Base of every warning."""


class BagDataWarning(UnbagWarning):
    """The data can be used, but something about it is probably not meant."""


class SplitBagsWarning(UnbagWarning):
    """A bag arrived in parts, so its proportion no longer describes the rows at hand."""


class StackingWarning(UnbagWarning):
    """The trials could not be trained at once and were trained one after the other."""


class ConditionWarning(UnbagWarning):
    """A theorem is used outside the condition it was proved under."""
