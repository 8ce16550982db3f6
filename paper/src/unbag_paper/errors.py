"""Errors and warnings of the experiments and the theory."""

from __future__ import annotations

from unbag.errors import UnbagError, UnbagWarning

__all__ = [
    "CompilationWarning",
    "ConditionWarning",
    "DatasetError",
    "MissingDataError",
    "StoreError",
    "StoreWarning",
]


class DatasetError(UnbagError, ValueError):
    """A file of a data set has the wrong format. The message names the file."""


class MissingDataError(DatasetError, FileNotFoundError):
    """A file of a data set is missing. The message says how to get it."""


class StoreError(UnbagError, RuntimeError):
    """Rows of an experiment cannot be read or written."""


class CompilationWarning(UnbagWarning):
    """Compiled code gave other results than the plain code, which is used instead."""


class StoreWarning(UnbagWarning):
    """Stored rows are damaged or out of date. The message says which were left out."""


class ConditionWarning(UnbagWarning):
    """A theorem is used outside the conditions of its proof."""
