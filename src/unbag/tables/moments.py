"""Moments of the features of many rows, at the speed of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unbag.models import Moments, join_moments

__all__ = ["moments_of_rows"]

Array = NDArray[Any]
LANES = 64  # rows side by side: numpy adds up few long rows faster than many short ones
STACKS = 512  # of them at a time, which stay in the cache


def moments_of_rows(X: Array) -> Moments:
    """Moments of rows in C order, by this thread alone, in single precision if `X` is.

    Examples
    --------
    >>> moments_of_rows(np.array([[1.0], [3.0], [5.0]]))
    (3, tensor([3.], dtype=torch.float64), tensor([8.], dtype=torch.float64))
    """
    n_stacks, n_features = len(X) // LANES, X.shape[1]
    found = []
    if n_stacks:
        found.append(_of_lanes(X[: n_stacks * LANES].reshape(n_stacks, LANES * n_features)))
    if len(X) % LANES:
        found.append(_moments(X[n_stacks * LANES :]))
    return join_moments(found)


def _of_lanes(stacked: Array) -> Moments:
    gaps = np.empty_like(stacked[:STACKS])
    pieces = (stacked[start : start + STACKS] for start in range(0, len(stacked), STACKS))
    count, means, spreads = join_moments(_moments(piece, gaps) for piece in pieces)
    means, spreads = means.reshape(LANES, -1), spreads.reshape(LANES, -1)
    mean = means.mean(dim=0)
    spread = spreads.sum(dim=0) + count * (means - mean).square().sum(dim=0)
    return LANES * count, mean, spread


def _moments(X: Array, gaps: Array | None = None) -> Moments:
    mean = X.sum(axis=0) / X.dtype.type(len(X))
    gaps = np.subtract(X, mean, out=None if gaps is None else gaps[: len(X)])
    spread = np.einsum("ij,ij->j", gaps, gaps)
    return len(X), torch.from_numpy(mean).double(), torch.from_numpy(spread).double()
