"""The error of a trained net as bags of test instances show it."""

import numpy as np
import pytest
import torch
from paper.tests.support.small_grid import small_data, small_grid
from torch import nn

from unbag_paper.runs.label_free_error import ERROR_FROM_BAGS, error_from_bags, hard_predictions
from unbag_paper.runs.rows import Store
from unbag_paper.runs.runner import Runner


class Labels:
    """Labels alone are enough, but bags want instances."""

    def __init__(self, n, seed):
        self.y_test = np.random.default_rng(seed).integers(0, 2, n)
        self.X_test = np.zeros((n, 1))


def flipped(labels, share, seed):
    wrong = np.random.default_rng(seed).random(len(labels)) < share
    return labels.astype(bool) ^ wrong


@pytest.mark.parametrize("bag_size", [10, 1000])
def test_interval_covers_the_true_error(bag_size):
    missed = 0
    for seed in range(100):
        data = Labels(10_000, seed)
        found = error_from_bags(flipped(data.y_test, 0.1, seed), data, bag_size=bag_size, seed=seed)
        _, low, high, truth = found
        missed += not low <= truth <= high
    assert missed <= 12  # five expected; more than twelve in one of two thousand runs


def test_truth_is_the_share_of_wrong_predictions():
    data = Labels(1000, 0)
    predicted = data.y_test.astype(bool).copy()
    predicted[:30] ^= True
    assert error_from_bags(predicted, data, bag_size=10, seed=0)[3] == pytest.approx(0.03)


def test_bytes_are_pixels():
    net = nn.Linear(1, 1)
    with torch.no_grad():
        net.weight.fill_(1.0)
        net.bias.fill_(-0.5)
    pixels = torch.tensor([[0], [255]], dtype=torch.uint8)
    assert hard_predictions(net, pixels).tolist() == [False, True]


def test_truth_is_the_last_recorded_test_error(tmp_path):
    store = Store(tmp_path / "rows")
    Runner([small_grid()], store, small_data()).run()
    for row in store.rows():
        truth = row.arrays[ERROR_FROM_BAGS][3]
        assert truth == pytest.approx(row.arrays["test_error"][-1], abs=1e-6)
