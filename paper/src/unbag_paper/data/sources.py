"""Finding the files of a data set: in a given folder, in the cache, or by download."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from unbag_paper.data.formats import (
    Array,
    read_arrays,
    read_cifar_binary,
    read_cifar_python,
    read_idx,
    read_mosaic,
)
from unbag_paper.errors import DatasetError, MissingDataError

__all__ = ["DATA_VARIABLE", "SOURCES", "Source", "cache_folder"]

DATA_VARIABLE = "UNBAG_DATA"

Split = tuple[Array, Array]


@dataclass(frozen=True)
class Remote:
    """One file to download, with its hash as pooch writes it; an archive is unpacked."""

    url: str
    hash: str
    archive: bool = False

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Layout:
    """One way the files may lie in a folder, and how to read them."""

    folders: tuple[str, ...]
    train: tuple[str, ...]
    test: tuple[str, ...]
    read: Callable[[list[Path]], Split]

    def find(self, root: Path) -> tuple[list[Path], list[Path]] | None:
        """Training and test files below `root`, or None if one is missing."""
        for folder in self.folders:
            parts = [
                [_existing(root / folder / name) for name in p] for p in (self.train, self.test)
            ]
            train, test = ([path for path in part if path is not None] for part in parts)
            if len(train) == len(self.train) and len(test) == len(self.test):
                return train, test
        return None


@dataclass(frozen=True)
class Source:
    """A data set: its layouts on disk, and where it is downloaded from.

    Attributes
    ----------
    name : str
    layouts : tuple of Layout
        In order of preference.
    remotes : tuple of Remote
        The official files.
    """

    name: str
    layouts: tuple[Layout, ...]
    remotes: tuple[Remote, ...]

    def load(self, folder: Path | str | None = None) -> tuple[Split, Split]:
        """Read images and class labels, training and test.

        Parameters
        ----------
        folder : path, optional
            Where the files are. None looks at the environment variable UNBAG_DATA, then in the
            cache, and then downloads.
        """
        folder = folder or os.environ.get(DATA_VARIABLE)
        if folder is not None:
            return self._read(Path(folder), given=True)
        root = cache_folder()
        if not any(layout.find(root) for layout in self.layouts):
            self._download(root)
        return self._read(root, given=False)

    def _read(self, root: Path, *, given: bool) -> tuple[Split, Split]:
        for layout in self.layouts:
            if (found := layout.find(root)) is not None:
                train, test = (layout.read(paths) for paths in found)
                _check_split(train, root)
                _check_split(test, root)
                return train, test
        raise MissingDataError(self._missing(root, given=given))

    def _missing(self, root: Path, *, given: bool) -> str:
        first = self.layouts[0]
        wanted = root / first.folders[0] / first.train[0]
        install = "" if find_spec("pooch") else "install `unbag[data]` and "
        again = "name no folder" if given else "run it again with a network"
        return (
            f"The files of {self.name} are not in {root} (wanted {wanted}, and the others beside "
            f"it). Either {install}{again}, and they are downloaded; or put them there yourself, "
            f"from {self.remotes[0].url.rsplit('/', 1)[0]}/, and name the folder "
            f"with --data or {DATA_VARIABLE}."
        )

    def _download(self, root: Path) -> None:
        if find_spec("pooch") is None:
            raise MissingDataError(self._missing(root, given=False))
        import pooch

        target = root / self.layouts[0].folders[0]
        for remote in self.remotes:
            # The archive of CIFAR-10 holds the folder of its layout, so it is unpacked in `root`.
            unpack = pooch.Untar(extract_dir=str(root)) if remote.archive else None
            try:
                pooch.retrieve(
                    remote.url,
                    known_hash=remote.hash,
                    fname=remote.name,
                    path=root if remote.archive else target,
                    processor=unpack,
                )
            except (OSError, ValueError) as error:
                reason = f"{remote.url} could not be downloaded ({error})."
                raise MissingDataError(f"{reason} {self._missing(root, given=False)}") from error


def cache_folder() -> Path:
    """Where downloads are kept: ``$XDG_CACHE_HOME/unbag``, or ``~/.cache/unbag``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unbag"


def _existing(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return path if path.is_file() else packed if packed.is_file() else None


def _check_split(split: Split, root: Path) -> None:
    images, labels = split
    if len(images) != len(labels) or len(labels) == 0 or labels.max() > 9:
        raise DatasetError(
            f"The files in {root} do not belong together: {len(images)} images, {len(labels)} "
            f"labels up to {labels.max(initial=0)}."
        )


def _read_idx_pair(paths: list[Path]) -> Split:
    images, labels = (read_idx(path) for path in paths)
    return images[:, None], labels


def _joined(read: Callable[[Path], Split]) -> Callable[[list[Path]], Split]:
    """A reader of several files, one after the other."""

    def read_all(paths: list[Path]) -> Split:
        images, labels = zip(*map(read, paths), strict=True)
        return np.concatenate(images), np.concatenate(labels)

    return read_all


def _idx_source(name: str, folders: tuple[str, ...], url: str, hashes: dict[str, str]) -> Source:
    names = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in _IDX_KINDS]
    layout = Layout(folders, tuple(names[:2]), tuple(names[2:]), _read_idx_pair)
    remotes = tuple(Remote(f"{url}/{n}.gz", f"md5:{hashes[n]}") for n in names)
    return Source(name, (layout,), remotes)


_IDX_KINDS = ("images-idx3", "labels-idx1")

_CIFAR_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        _idx_source(
            "MNIST",
            ("mnist", "MNIST/raw", "."),
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            {
                "train-images-idx3-ubyte": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                "train-labels-idx1-ubyte": "d53e105ee54ea40749a09fcbcd1e9432",
                "t10k-images-idx3-ubyte": "9fb629c4189551a2d022fa330f9573f3",
                "t10k-labels-idx1-ubyte": "ec29112dd5afa0611ce80d1b7f02629c",
            },
        ),
        # Its files are named like those of MNIST, so they need a folder of their own.
        _idx_source(
            "Fashion-MNIST",
            ("fashion-mnist", "FashionMNIST/raw"),
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            {
                "train-images-idx3-ubyte": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "train-labels-idx1-ubyte": "25c81989df183df01b3e8a0aad5dffbe",
                "t10k-images-idx3-ubyte": "bef4ecab320f06d8554ea6380940ec79",
                "t10k-labels-idx1-ubyte": "bb300cfdad3c16e7a12a480ee83cd310",
            },
        ),
        Source(
            "CIFAR-10",
            (
                Layout(
                    ("cifar-10-batches-bin", "."),
                    tuple(f"{name}.bin" for name in _CIFAR_BATCHES),
                    ("test_batch.bin",),
                    _joined(read_cifar_binary),
                ),
                Layout(
                    ("cifar-10-batches-py", "."),
                    _CIFAR_BATCHES,
                    ("test_batch",),
                    _joined(read_cifar_python),
                ),
                Layout(
                    ("cifar-10-mosaics", "."),
                    tuple(f"{name}.webp" for name in _CIFAR_BATCHES),
                    ("test_batch.webp",),
                    _joined(read_mosaic),
                ),
                Layout(("cifar-10", "."), ("train.npz",), ("test.npz",), _joined(read_arrays)),
            ),
            (
                Remote(
                    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                    "md5:c32a1d4ab5d03f1284b67883e8d87530",
                    archive=True,
                ),
            ),
        ),
    )
}
