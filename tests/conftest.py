"""Fixtures shared by all tests."""

import numpy as np
import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--seed", type=int, default=0, help="seed of every random test")


@pytest.fixture
def seed(request):
    return request.config.getoption("--seed")


@pytest.fixture
def generator(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)
