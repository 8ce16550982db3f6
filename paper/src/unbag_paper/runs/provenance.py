"""Where a number comes from: commit, device and versions, noted in every row."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

from unbag.arguments import check_device

__all__ = ["device_name", "provenance"]


def provenance(device: str) -> dict[str, Any]:
    """What a row says about how it was computed."""
    return {
        "commit": _commit(),
        "device": device_name(device),
        "versions": _versions(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def device_name(device: str) -> str:
    """The device's own name, such as the model of a GPU."""
    check_device(device)
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return f"{device} ({platform.machine()})"


@cache
def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("numpy", "torch", "unbag"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "source"
    return found


@cache
def _commit() -> str:
    """For a copy without its history, what UNBAG_COMMIT or a file COMMIT says; or git knows."""
    root = Path(__file__).parents[4]
    if noted := os.environ.get("UNBAG_COMMIT"):
        return noted
    if (file := root / "COMMIT").is_file():
        return file.read_text().strip()
    if not (root / ".git").exists() or Path(__file__).parents[2] != root / "paper" / "src":
        return "unknown"  # installed, perhaps inside somebody else's repository
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip() or "unknown"
