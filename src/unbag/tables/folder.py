"""Model folders: refuse to overwrite other files, and verify the hashes of all files."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from unbag.estimators.saving import FORMAT, ModelFolderError, read_json, write_json

__all__ = ["check_free", "check_manifest", "write_manifest"]

NEEDED = ("model.json", "model.safetensors", "table.json", "fit.json")


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Raise if the folder cannot be written, is no model, or may not be overwritten."""
    if folder.resolve() == Path.cwd():
        raise ModelFolderError(f"{folder} is the folder you are in; name another one.")
    place = next(path for path in folder.absolute().parents if path.exists())
    try:
        tempfile.TemporaryDirectory(dir=place).cleanup()
    except OSError as error:
        reason = f"{place}: {error.strerror}"
        raise ModelFolderError(f"{folder} cannot be written. {reason}.") from error
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / "manifest.json").is_file():
        raise ModelFolderError(f"{folder} exists and is no model folder; choose another name.")
    if not overwrite:
        raise ModelFolderError(f"{folder} holds a model already. Pass --overwrite to replace it.")


def write_manifest(folder: Path) -> None:
    """Write the hashes of all files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {path.relative_to(folder).as_posix(): _hash(path) for path in files}
    write_json(folder / "manifest.json", {"format": FORMAT, "sha256": hashes})


def check_manifest(folder: Path) -> None:
    """Raise unless all files are there, as they were written."""
    manifest = read_json(folder / "manifest.json")
    hashes = manifest.get("sha256") if isinstance(manifest, dict) else None
    if not isinstance(hashes, dict) or manifest.get("format") != FORMAT:
        raise ModelFolderError(
            f"{folder / 'manifest.json'} is not of format {FORMAT}, which this version reads."
        )
    for name in {*NEEDED, *hashes}:
        if not (folder / name).is_file():
            raise ModelFolderError(f"{folder} holds no {name}; it is not a complete model folder.")
        if _hash(folder / name) != hashes.get(name):
            raise ModelFolderError(f"{folder / name} was altered since the model was written.")


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
