"""Named binary problems: a source, the classes that count as 1, and the arrays they become."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.randomness import numpy_generator
from unbag_paper.data.sources import SOURCES

__all__ = ["PROBLEMS", "Labelled", "Problem", "bundled_digits", "load_problem"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labelled instances, for training and for testing.

    Attributes
    ----------
    name : str
    X_train, X_test : array of uint8 of shape (n, channels, height, width)
    y_train, y_test : array of uint8 of shape (n,)
        Labels 0 and 1, or numbers of classes.
    """

    name: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array

    @cached_property
    def fingerprint(self) -> str:
        """First twelve digits of a hash of all arrays, so that a result can name its data."""
        digest = hashlib.sha256()
        for array in (self.X_train, self.y_train, self.X_test, self.y_test):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Problem:
    """A binary problem by declaration.

    Attributes
    ----------
    name : str
    source : str
        A key of `SOURCES`, or "digits" for the 8 x 8 digits that come with scikit-learn.
    positives : tuple of int
        Classes labelled 1.
    task : str
        What the labels mean, in words.
    """

    name: str
    source: str
    positives: tuple[int, ...]
    task: str

    def load(self, folder: Path | str | None = None) -> Labelled:
        """Read the arrays; see `load_problem`."""
        if self.source == "digits":
            train, test = bundled_digits()
        else:
            train, test = SOURCES[self.source].load(folder)
        (X_train, c_train), (X_test, c_test) = train, test
        return Labelled(self.name, X_train, self._labels(c_train), X_test, self._labels(c_test))

    def _labels(self, classes: Array) -> Array:
        return np.isin(classes, self.positives).astype(np.uint8)


_EVEN = (0, 2, 4, 6, 8)

PROBLEMS: dict[str, Problem] = {
    problem.name: problem
    for problem in (
        Problem("mnist", "MNIST", _EVEN, "even digits against odd ones"),
        Problem(
            "cifar", "CIFAR-10", (2, 3, 4, 5, 6, 7), "bird, cat, deer, dog, frog, horse: machines"
        ),
        Problem("fashion", "Fashion-MNIST", (0, 2, 4, 6), "T-shirt, pullover, coat, shirt: others"),
        Problem("digits", "digits", _EVEN, "even digits against odd ones, bundled"),
    )
}


def load_problem(name: str, *, folder: Path | str | None = None) -> Labelled:
    """Load a named problem.

    Parameters
    ----------
    name : str
        A key of `PROBLEMS`.
    folder : path, optional
        Folder that holds the files. None looks at the environment variable UNBAG_DATA, then in the
        cache, and then downloads, for which `unbag[data]` must be installed.

    Raises
    ------
    MissingDataError
        If a file is missing; the message says how to get it.

    Examples
    --------
    >>> data = load_problem("digits")
    >>> data.X_train.shape, data.X_train.dtype, round(float(data.y_train.mean()), 2)
    ((1297, 1, 8, 8), dtype('uint8'), 0.49)
    """
    if name not in PROBLEMS:
        raise ValueError(f"name must be one of {sorted(PROBLEMS)}, got {name!r}.")
    return PROBLEMS[name].load(folder)


def bundled_digits(n_test: int = 500) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The digits of scikit-learn, grey levels 0 to 16 stretched to bytes, shuffled once."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * (255 / 16)).astype(np.uint8)[:, None]
    order = numpy_generator("digits", "split").permutation(len(images))
    test, train = order[:n_test], order[n_test:]
    return (images[train], digits.target[train]), (images[test], digits.target[test])
