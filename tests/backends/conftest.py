"""One Ray for all tests of this folder."""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def ray_executor():
    ray = pytest.importorskip("ray", reason="the extra unbag[ray] is not installed")
    from unbag.backends.ray_tasks import RayExecutor

    paths = [str(TESTS / "backends"), str(TESTS / "engine"), str(TESTS / "rules"), *sys.path]
    ray.init(
        address="local",
        num_cpus=3,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": ":".join(paths)}},
    )
    yield RayExecutor("local", max_retries=1)
    ray.shutdown()
