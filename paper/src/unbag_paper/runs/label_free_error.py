"""The error of a trained net, estimated from bags of test instances and beside its true error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unbag.bags import make_bags
from unbag.evaluation import estimate_risk
from unbag_paper.data import Labelled
from unbag_paper.runs.monitors import HELD_OUT_BAG_SIZE, logits_on

__all__ = ["ERROR_FROM_BAGS", "error_from_bags", "hard_predictions"]

ERROR_FROM_BAGS = "error_from_bags"
"""Name of the array: estimate, ends of the 95 % interval, and the truth."""


def hard_predictions(model: Any, X: Tensor) -> NDArray[np.bool_]:
    """Labels a binary net gives to instances."""
    return (logits_on(model, X).squeeze(-1) > 0).cpu().numpy()


def error_from_bags(
    predicted: NDArray[np.bool_], data: Labelled, *, bag_size: int, seed: int
) -> NDArray[np.float32]:
    """Estimate the error of hard predictions on the test set from random bags of it.

    Parameters
    ----------
    predicted : array of shape (n_test,)
    data : Labelled
    bag_size : int
        At most 100 are used: a test set of 10,000 has too few bags of 1000.
    seed : int
        Of the bags; one for each trial, since trials that share bags are right or wrong together.

    Returns
    -------
    array of shape (4,)
        Estimate, lower and upper end of its 95 % interval, and the true error.
    """
    size = min(bag_size, HELD_OUT_BAG_SIZE, len(data.y_test) // 2)
    bags = make_bags(data.X_test, data.y_test, bag_size=size, seed=seed)
    found = estimate_risk(predicted.astype(float), bags)
    truth = float(np.mean(predicted != data.y_test.astype(bool)))
    return np.array([found.value, found.low, found.high, truth], dtype=np.float32)
