"""Optional dependencies: imported on use; a missing one is reported with its extra."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from unbag.errors import MissingExtraError


def import_extra(module: str, *, extra: str, purpose: str) -> Any:
    """Import an optional dependency, or raise an error with the line that installs it."""
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
    """Whether an optional dependency is installed, without importing it."""
    return importlib.util.find_spec(name) is not None
