"""The exceptions and warnings of the library."""

from __future__ import annotations


class UnbagError(Exception):
    """Base class of all errors of the library."""


class BagDataError(UnbagError, ValueError):
    """The data do not describe bags. The message names the argument and the first bad bag."""


class TableError(UnbagError, ValueError):
    """A table cannot be read or used. The message names the file, the row and the column."""


class MissingExtraError(UnbagError, ImportError):
    """An optional dependency is not installed. The message names the extra to install."""


class TrainingError(UnbagError, RuntimeError):
    """Training diverged, and its result was needed by other trials."""


class WorkerError(UnbagError, RuntimeError):
    """Work in another process or on another machine failed, or was lost too often."""


class ConditionError(UnbagError, ValueError):
    """The arguments are outside the domain of a formula or an exact minimiser."""


class UnbagWarning(UserWarning):
    """Base class of all warnings of the library."""


class BagDataWarning(UnbagWarning):
    """The data can be used, but probably contain a mistake."""


class SplitBagsWarning(UnbagWarning):
    """Some rows of a bag are missing, so its proportion does not describe the rest."""


class StackingWarning(UnbagWarning):
    """The trials could not be trained together and were trained one after the other."""
