"""Instances on their way to a net."""

import numpy as np
import pytest
import torch

from unbag.training.batches import as_tensor

VIEWS = [np.s_[::-1], np.s_[:, ::-1], np.s_[::2], np.s_[::-2, 1:]]


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
def test_any_view_of_an_array_becomes_a_tensor(rng, dtype, view):
    X = (100 * rng.random(size=(6, 4, 3))).astype(dtype)
    for array in (X[view], X[..., 0][view]):
        found = as_tensor(array, torch.device("cpu"))
        np.testing.assert_array_equal(found.numpy(), array.astype("float32"))
