"""Conditions of the paper's theorems outside of which an answer is only a shape."""

from __future__ import annotations

import warnings

from unbag_paper.errors import ConditionWarning

__all__ = ["warn_unless"]


def warn_unless(holds: bool, message: str, *, stacklevel: int = 3) -> None:
    """Warn with `ConditionWarning` unless a theorem's condition holds."""
    if not holds:
        warnings.warn(message, ConditionWarning, stacklevel=stacklevel)
