"""Data and bags as the paper's own code has them, where the paper does not state them.

The code that the paper names (github.com/GXLI97/llp_experiments) shuffles the training set once and
cuts it into bags and batches that all seeds share, and enlarges the images of MNIST to 32 x 32.
"""

from __future__ import annotations

import io
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import interpolate

from unbag.bags import Bags
from unbag_paper.data import Labelled
from unbag_paper.errors import DatasetError

__all__ = ["as_the_paper_sees", "bags_in_order", "enlarged", "paper_order"]

Array = NDArray[Any]
SIDE = 32


def as_the_paper_sees(data: Labelled) -> Labelled:
    """The same problem with training instances in the paper's order, and images of its size."""
    order = paper_order(data.name, len(data.y_train))
    return replace(
        data,
        X_train=enlarged(data.X_train)[order],
        y_train=data.y_train[order],
        X_test=enlarged(data.X_test),
    )


def paper_order(name: str, n_instances: int) -> Array:
    """Rows of a data set in the order that the paper's code reads them in."""
    folder = resources.files("unbag_paper.runs") / "orders"
    stored = np.load(io.BytesIO((folder / f"{name}.npy").read_bytes()), allow_pickle=False)
    if len(stored) != n_instances:
        raise DatasetError(
            f"The paper's order of {name} is of {len(stored)} instances, the data have "
            f"{n_instances}."
        )
    return stored.astype(int)


def enlarged(images: Array) -> Array:
    """Images of 32 x 32 pixels by bilinear interpolation, from 0 to 1; others pass as they are.

    Examples
    --------
    >>> enlarged(np.full((1, 1, 28, 28), 51, dtype=np.uint8)).mean().round(3)
    np.float32(0.2)
    """
    if images.shape[-2:] == (SIDE, SIDE):
        return images
    pixels = torch.from_numpy(images).float() / 255
    return interpolate(pixels, size=(SIDE, SIDE), mode="bilinear").numpy()


def bags_in_order(X: Any, y: Array, *, bag_size: int) -> Bags:
    """Bags of instances that follow each other.

    Examples
    --------
    >>> bags_in_order(np.zeros((4, 1)), np.array([0, 1, 1, 1]), bag_size=2).proportions
    array([0.5, 1. ])
    """
    proportions = y.reshape(-1, bag_size).mean(axis=1)
    sizes = np.full(len(proportions), bag_size)
    return Bags(X, np.arange(len(y)), sizes, proportions, list(range(len(sizes))))
