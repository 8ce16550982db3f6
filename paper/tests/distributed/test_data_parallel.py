"""One training on several workers: by processes, by torchrun, by Ray Train, with a kill."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from paper.tests.support import sharded_work as work
from torch import nn

from unbag.errors import MissingExtraError, WorkerError
from unbag.training import Trial, train
from unbag_paper.distributed.data_parallel import ParallelTraining


def fragile(shape, n_outputs, flag):
    return work.Fragile(shape[0], n_outputs, flag, step=10)


def plain(shape, n_outputs):
    return nn.Sequential(nn.Linear(shape[0], n_outputs))


@pytest.fixture(scope="module")
def losses_of_one():
    [result] = train([Trial(seed=1)], work.unequal_bags(), model=plain, settings=work.SETTINGS)
    return result.history["loss"]


def training(folder, model):
    return ParallelTraining(
        Trial(seed=1), work.unequal_bags(), model, (), work.SETTINGS, folder / "states"
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")
@pytest.mark.filterwarnings("ignore::FutureWarning:ray")
def test_ray_train_with_a_killed_worker_gives_what_one_process_gives(
    ray_executor, losses_of_one, tmp_path
):
    model = partial(fragile, flag=str(tmp_path / "flag"))
    result = training(tmp_path, model).on_ray(2)
    assert (tmp_path / "flag").exists()
    np.testing.assert_allclose(result.history["loss"], losses_of_one, rtol=1e-4)


def test_torchrun_with_a_killed_worker_gives_what_one_process_gives(losses_of_one, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--max-restarts=1", "--standalone", __file__, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "flag").exists()
    losses = np.load(tmp_path / "losses.npy")
    np.testing.assert_allclose(losses, losses_of_one, rtol=1e-4)


def test_ray_train_needs_a_folder():
    with pytest.raises(ValueError, match="checkpoints"):
        ParallelTraining(Trial(), work.unequal_bags()).on_ray(2)


def test_without_ray_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"unbag\[ray\]"):
        training(tmp_path, plain).on_ray(2)


def main(folder):
    """What torchrun starts on every worker."""
    result = training(folder, partial(fragile, flag=str(folder / "flag")))()
    np.save(folder / "losses.npy", result.history["loss"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))


def test_a_process_in_no_group_is_told_how_to_make_one(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(WorkerError, match=r"RANK.* not set.*torchrun.*on_processes"):
        ParallelTraining(Trial(), None, "mlp")()
