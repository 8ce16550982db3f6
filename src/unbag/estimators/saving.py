"""Save an estimator as safetensors and JSON; loading executes nothing from the folder."""

from __future__ import annotations

import hashlib
import json
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from unbag.arrays import Array, Arrays
from unbag.errors import UnbagError
from unbag.extras import import_extra
from unbag.rules import Rule

FORMAT = 2
_TENSORS, _DESCRIPTION = "model.safetensors", "model.json"


class ModelFolderError(UnbagError, ValueError):
    """A file of a model folder is missing or cannot be read."""


def plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters that JSON can store; others, such as functions, are left out."""
    found = {}
    for name, value in parameters.items():
        with suppress(TypeError):
            found[name] = json.loads(json.dumps(value, default=_plain))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Rule):
        return {"name": value.name, **asdict(value)}  # type: ignore[call-overload]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no plain value")


def write_folder(folder: str | Path, description: dict[str, Any], tensors: Arrays) -> Path:
    """Write both files under temporary names first, so that none is ever incomplete."""
    folder = Path(folder)
    _refuse_other_files(folder)
    folder.mkdir(parents=True, exist_ok=True)
    contiguous = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
    temporary = folder / f"{_TENSORS}.part"
    temporary.write_bytes(save(contiguous))  # `save_file` lets nobody else read it
    temporary.replace(folder / _TENSORS)
    write_json(folder / _DESCRIPTION, {"format": FORMAT} | description)
    return folder


def _refuse_other_files(folder: Path) -> None:
    """Raise unless the folder is new, empty, or holds a model, which is replaced."""
    if folder.exists() and not folder.is_dir():
        raise ModelFolderError(f"{folder} is a file; a model is saved in a folder.")
    about = folder / _DESCRIPTION
    own = about.is_file() and '"format"' in about.read_text(encoding="utf-8", errors="replace")
    if folder.exists() and any(folder.iterdir()) and not own:
        raise ModelFolderError(f"{folder} holds other files and no model; choose another folder.")


def write_json(path: Path, values: Any) -> None:
    """Write plain values under a temporary name first."""
    temporary = path.with_name(f"{path.name}.part")
    temporary.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def read_json(path: Path) -> Any:
    """Read a JSON file of a model folder."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise _incomplete(path) from error
    except (OSError, ValueError) as error:
        raise ModelFolderError(f"{path} is damaged: {error}.") from error


def _incomplete(path: Path) -> ModelFolderError:
    return ModelFolderError(
        f"{path.parent} holds no {path.name}; it is not a complete model folder."
    )


def read_folder(folder: str | Path, *, kind: str) -> tuple[dict[str, Any], Arrays]:
    """Read description and tensors of an estimator of this kind."""
    folder = Path(folder)
    description = read_json(folder / _DESCRIPTION)
    try:
        tensors = load_file(folder / _TENSORS)
    except FileNotFoundError as error:
        raise _incomplete(folder / _TENSORS) from error
    except SafetensorError as error:
        raise ModelFolderError(f"{folder / _TENSORS} is damaged: {error}.") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ModelFolderError(
            f"{folder / _DESCRIPTION} is not of format {FORMAT}, which this version reads. Fit and "
            "save the model again."
        )
    if description.get("kind") != kind:
        raise ModelFolderError(
            f"{folder} holds a {description.get('kind')}, wanted a {kind}. Use that class's load."
        )
    return description, tensors


def read_booster(text: Array, folder: str | Path) -> Any:
    """Read trees of LightGBM from the bytes of its text format."""
    lightgbm = import_extra("lightgbm", extra="gbm", purpose="Reading boosted trees")
    try:
        return lightgbm.Booster(model_str=text.tobytes().decode())
    except (lightgbm.basic.LightGBMError, UnicodeDecodeError) as error:
        raise ModelFolderError(f"{folder} holds trees that cannot be read: {error}.") from error


NEEDED = ("model.json", "model.safetensors", "table.json", "fit.json")


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Raise if the folder cannot be written, is not a model, or may not be overwritten."""
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
    """Raise unless all files are present and unchanged."""
    if not folder.is_dir():
        found = "is no folder" if folder.exists() else "does not exist"
        raise ModelFolderError(f"{folder} {found}. Name a model folder, which `unbag fit` writes.")
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
