"""Bags of labelled images: at random, or of images that look alike; some of them held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.randomness import numpy_generator
from unbag_paper.league.spec import Kind

__all__ = ["Division", "divide", "similar_order"]

Array = NDArray[Any]
N_CLUSTERS = 64
N_COMPONENTS = 16
N_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Division:
    """Rows of the images of each bag, shape (n_bags, bag_size), for training and held out."""

    train: Array
    held_out: Array


def divide(
    images: Array, kind: Kind, bag_size: int, *, held_out: float, seed: int, dataset: str
) -> Division:
    """Cut images into bags of equal size; a rest that fills no bag is left out.

    Parameters
    ----------
    images : array of shape (n, channels, height, width)
    kind : {"random", "clusters"}
    bag_size : int
    held_out : float
        Share of the bags held out: none for 0, else at least two.
    seed : int
    dataset : str
        Names the random stream.

    Examples
    --------
    >>> division = divide(np.zeros((103, 1, 2, 2)), "random", 10, held_out=0.2, seed=0, dataset="x")
    >>> division.train.shape, division.held_out.shape
    ((8, 10), (2, 10))
    """
    rng = numpy_generator("league", dataset, kind, bag_size, seed)
    order = rng.permutation(len(images))
    if kind == "clusters":
        order = order[similar_order(images[order], rng)]
    n_bags = len(images) // bag_size
    bags = order[: n_bags * bag_size].reshape(n_bags, bag_size)[rng.permutation(n_bags)]
    n_held_out = max(2, round(held_out * n_bags)) if held_out else 0
    if n_bags - n_held_out < 2:
        raise ValueError(
            f"bag_size must leave at least two bags to train on, got {n_bags} bags of {bag_size}, "
            f"{n_held_out} of them held out."
        )
    return Division(bags[n_held_out:], bags[:n_held_out])


def similar_order(images: Array, rng: np.random.Generator) -> Array:
    """Order in which images of one cluster stand together, by k-means of principal components."""
    pixels = images.reshape(len(images), -1).astype(np.float32)
    some = pixels[:10_000] - pixels.mean(axis=0)
    directions = np.linalg.eigh(some.T @ some)[1][:, -N_COMPONENTS:]
    points = pixels @ directions
    centres = points[rng.choice(len(points), min(N_CLUSTERS, len(points)), replace=False)]
    for _ in range(N_ROUNDS):
        nearest = _nearest(points, centres)
        for cluster in np.unique(nearest):
            centres[cluster] = points[nearest == cluster].mean(axis=0)
    return np.argsort(_nearest(points, centres), kind="stable")


def _nearest(points: Array, centres: Array) -> Array:
    distances = (centres**2).sum(axis=1) - 2 * points @ centres.T
    return distances.argmin(axis=1)
