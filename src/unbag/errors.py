"""Every exception and warning the library raises."""

from __future__ import annotations

__all__ = [
    "BagDataError",
    "BagDataWarning",
    "CompilationWarning",
    "ConditionError",
    "ConditionWarning",
    "DatasetError",
    "MissingDataError",
    "MissingExtraError",
    "SplitBagsWarning",
    "StackingWarning",
    "StoreError",
    "StoreWarning",
    "TableError",
    "TrainingError",
    "UnbagError",
    "UnbagWarning",
    "WorkerError",
]


class UnbagError(Exception):
    """Base of every error raised on purpose; catch this one to catch them all."""


class BagDataError(UnbagError, ValueError):
    """The data cannot be read as bags: the message names the argument and the first bad bag."""


class DatasetError(UnbagError, ValueError):
    """A file of a data set cannot be read as what it should be: the message names the file."""


class MissingDataError(DatasetError, FileNotFoundError):
    """A file of a data set is not on this machine: the message says how to get it."""


class TableError(UnbagError, ValueError):
    """A table cannot be read or used: the message names the file, the row and the column."""


class MissingExtraError(UnbagError, ImportError):
    """An optional dependency is not installed: the message names the extra that brings it."""


class StoreError(UnbagError, RuntimeError):
    """Rows of an experiment cannot be read or written."""


class TrainingError(UnbagError, RuntimeError):
    """A training ended in numbers that are not finite, and others were to build on it."""


class WorkerError(UnbagError, RuntimeError):
    """Work on other processes or machines failed there, or was lost too often."""


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


class CompilationWarning(UnbagWarning):
    """Compiled code did something else than the plain code, which runs in its place."""


class StoreWarning(UnbagWarning):
    """Rows of a store are damaged or out of date; the message says what was left out."""


class ConditionWarning(UnbagWarning):
    """A theorem is used outside the condition it was proved under."""
