"""Fixtures shared by all tests."""

import gc
import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

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


@pytest.fixture(scope="session")
def ray_executor():
    """A Ray on this machine, whose workers find the modules of the tests."""
    ray = pytest.importorskip("ray", reason="the extra unbag[ray] is not installed")
    from unbag.parallel import RayExecutor

    root = str(Path(__file__).parent)
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - nice workers starve on busy machines
    with own_warnings_ignored():
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": ":".join([root, *sys.path])}},
        )
    yield RayExecutor("local", max_retries=1)
    with own_warnings_ignored():
        ray.shutdown()


@contextmanager
def own_warnings_ignored():
    """Ray before 2.60 announces changes, and leaves files for the garbage collector to close."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        gc.collect()
