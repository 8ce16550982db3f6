"""Images with all their classes, from a folder."""

from __future__ import annotations

from pathlib import Path

from unbag_paper.data import Labelled
from unbag_paper.data.problems import bundled_digits
from unbag_paper.data.sources import SOURCES

__all__ = ["DATASETS", "load_images"]

DATASETS = {"cifar10": "CIFAR-10", "mnist": "MNIST", "fashion": "Fashion-MNIST", "digits": ""}


def load_images(name: str, folder: Path | str | None = None) -> Labelled:
    """Images and class numbers, for training and testing.

    Parameters
    ----------
    name : {"cifar10", "mnist", "fashion", "digits"}
    folder : path, optional
        As for `load_problem`; the digits come with scikit-learn.

    Examples
    --------
    >>> load_images("digits").y_train.max()
    np.uint8(9)
    """
    if name not in DATASETS:
        raise ValueError(f"name must be one of {', '.join(DATASETS)}, got {name!r}.")
    train, test = bundled_digits() if name == "digits" else SOURCES[DATASETS[name]].load(folder)
    return Labelled(name, train[0], train[1].astype("uint8"), test[0], test[1].astype("uint8"))
