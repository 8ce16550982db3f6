"""Optional dependencies: imported when they are used, and missed by the name of their extra."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from unbag.errors import MissingExtraError

__all__ = ["has_module", "import_extra"]


def import_extra(module: str, *, extra: str, purpose: str) -> Any:
    """Import an optional dependency, or say how to install it.

    Parameters
    ----------
    module : str
        What to import.
    extra : str
        Extra of this package that brings it.
    purpose : str
        What needs it, for the message.

    Raises
    ------
    MissingExtraError
        If the module is not installed.

    Examples
    --------
    >>> import_extra("no_such_module", extra="gbm", purpose="Boosting")
    Traceback (most recent call last):
    ...
    unbag.errors.MissingExtraError: Boosting needs no_such_module, which is not installed...
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}, which is not installed. "
            f"Install it with: pip install 'unbag[{extra}]'"
        ) from error


def has_module(name: str) -> bool:
    """Whether an optional dependency is installed, found out without importing it.

    Examples
    --------
    >>> has_module("no_such_module")
    False
    """
    return importlib.util.find_spec(name) is not None
