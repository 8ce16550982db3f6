"""One run: bags, net, method, training, and what is measured on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unbag.bags.batch import BagBatch
from unbag.evaluation.risk import pairwise_value
from unbag.images import (
    ContrastiveSettings,
    ImageBags,
    LoopSettings,
    class_probabilities,
    contrastive_start,
    train_on_bags,
)
from unbag.models import get_model
from unbag.randomness import derive_seed
from unbag.rules import ProportionLog
from unbag_paper.data import Labelled
from unbag_paper.league.bags import divide
from unbag_paper.league.methods import Start
from unbag_paper.league.spec import RunSpec

__all__ = ["Machine", "OutOfTime", "start_path", "train_run"]

Array = NDArray[Any]
NEVER_MIRRORED = ("mnist", "digits")


class OutOfTime(Exception):  # noqa: N818
    """The deadline came before the end of a run."""


@dataclass(frozen=True)
class Machine:
    """Where and how a run is computed; none of it should change its numbers beyond rounding.

    Attributes
    ----------
    device : str
    deadline : float, optional
        Value of `time.monotonic()` at which a run is given up.
    starts : path, optional
        Folder that keeps contrastive starts: runs of one seed share theirs.
    """

    device: str = "cpu"
    deadline: float | None = None
    starts: Path | None = None

    def check_time(self) -> None:
        """Give up after the deadline."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime


def train_run(spec: RunSpec, data: Labelled, machine: Machine) -> dict[str, Array]:
    """Train, and return what was measured: one number for each check.

    Returns
    -------
    dict of str to array
        "epoch", "test_error", and if bags are held out "held_out_error", the pairwise estimate of
        the share of wrong predictions, and "held_out_log", the cross entropy of their proportions.
    """
    bags = _Bagged(spec, data, machine.device)
    checks = _Checks(spec, bags, machine)
    with _fast_kernels():
        _train(spec, data, bags.train, checks, machine)
    return {name: np.array(values) for name, values in checks.found.items()}


def _train(
    spec: RunSpec, data: Labelled, bags: ImageBags, checks: _Checks, machine: Machine
) -> None:
    net, method = _net(spec, data, machine), spec.make_method()
    if spec.start_epochs:
        load_or_train_start(net, spec, data, machine)
    method.begin(Start(net, bags))
    settings = LoopSettings(
        n_epochs=spec.epochs,
        images_per_batch=spec.images_per_batch,
        learning_rate=spec.learning_rate,
    )
    seed = derive_seed("league", spec.seed, "batches")
    options: dict[str, Any] = {"settings": settings, "flip": may_mirror(spec), "seed": seed}
    train_on_bags([net], bags, method, after_epoch=checks, **options)


def may_mirror(spec: RunSpec) -> bool:
    """Whether the mirror image of an image is one of the same class."""
    return spec.dataset not in NEVER_MIRRORED


@contextmanager
def _fast_kernels() -> Iterator[None]:
    """Sizes of batches never change, so the fastest kernels are worth looking for."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


class _Bagged:
    """Images on the device: bags to train on, bags held out, and the test set."""

    def __init__(self, spec: RunSpec, data: Labelled, device: str) -> None:
        self.device = device
        division = divide(
            data.X_train,
            spec.bags,
            spec.bag_size,
            held_out=spec.held_out,
            seed=spec.seed,
            dataset=spec.dataset,
        )
        n_classes = int(data.y_train.max()) + 1
        one_hot = np.eye(n_classes, dtype=np.float32)[data.y_train]
        self.train, self.held_out = (
            self._bags(data.X_train, one_hot, rows) for rows in (division.train, division.held_out)
        )
        self.test = self._images(data.X_test)
        self.labels = torch.tensor(np.array(data.y_test), device=device)

    def _bags(self, images: Array, one_hot: Array, rows: Array) -> ImageBags:
        shares = torch.as_tensor(one_hot[rows].mean(axis=1), device=self.device)
        bags = BagBatch(shares, rows.shape[1], task="multiclass")
        return ImageBags(self._images(images[rows.ravel()]), bags)

    def _images(self, images: Array) -> Tensor:
        return _on_device(images, self.device).contiguous(memory_format=torch.channels_last)


def _on_device(images: Array, device: str) -> Tensor:
    return torch.as_tensor(np.array(images), device=device)  # copied: workers share read-only maps


def _net(spec: RunSpec, data: Labelled, machine: Machine) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed("league", spec.net, spec.seed, "weights"))
        net = get_model(spec.net)(data.X_train.shape[1:], int(data.y_train.max()) + 1)
    return net.to(machine.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def start_path(spec: RunSpec, machine: Machine) -> Path | None:
    """File of the contrastive start of a run, if starts are kept."""
    if machine.starts is None:
        return None
    names = (spec.dataset, spec.data, spec.net, spec.start_epochs, spec.seed)
    return machine.starts / f"{derive_seed(*names):016x}.safetensors"


def load_or_train_start(net: Any, spec: RunSpec, data: Labelled, machine: Machine) -> None:
    """Contrastive training on all training images, which no bag and no label enters.

    So runs of one seed share it, whatever their bags.
    """
    from safetensors.torch import load_file, save_file

    path = start_path(spec, machine)
    if path is not None and path.is_file():
        net.load_state_dict(load_file(path, device=machine.device))
        return
    images = _on_device(data.X_train, machine.device)
    settings = ContrastiveSettings(
        n_epochs=spec.start_epochs, images_per_batch=spec.images_per_batch
    )
    seed = derive_seed("league", spec.seed, "start")
    contrastive_start(net, images, settings=settings, flip=may_mirror(spec), seed=seed)
    machine.check_time()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{time.monotonic_ns()}")
        save_file({name: t.contiguous() for name, t in net.state_dict().items()}, temporary)
        temporary.rename(path)


class _Checks:
    """Measure the averaged net every few epochs, and after the last."""

    def __init__(self, spec: RunSpec, bags: _Bagged, machine: Machine) -> None:
        self.spec, self.bags, self.machine, self.epoch = spec, bags, machine, 0
        self.found: dict[str, list[float]] = {"epoch": [], "test_error": []}

    def __call__(self, averages: list[nn.Module]) -> None:
        self.machine.check_time()
        self.epoch += 1
        if self.epoch % self.spec.check_every and self.epoch != self.spec.epochs:
            return
        wrong = self._scores(averages[0], self.bags.test).argmax(dim=1) != self.bags.labels
        self._note("epoch", self.epoch)
        self._note("test_error", float(wrong.float().mean()))
        if self.bags.held_out.bags.n_bags:
            self._look_at_bags(self._scores(averages[0], self.bags.held_out.images))

    def _scores(self, net: nn.Module, images: Tensor) -> Tensor:
        on_gpu = images.device.type == "cuda"
        with torch.autocast(images.device.type, dtype=torch.bfloat16, enabled=on_gpu):
            return class_probabilities(net, images, mirrored=may_mirror(self.spec))

    def _look_at_bags(self, scores: Tensor) -> None:
        bags = self.bags.held_out.bags
        hard = nn.functional.one_hot(scores.argmax(dim=1), scores.shape[1]).float()
        gaps = (bags.mean(hard) - bags.targets).cpu().numpy()
        sizes = bags.bag_sizes[:, 0].cpu().numpy()
        # Two coordinates of the one-hot label differ for every wrong prediction.
        self._note("held_out_error", pairwise_value(gaps, sizes) / 2)
        self._note("held_out_log", float(ProportionLog()(scores.log(), bags)))

    def _note(self, name: str, value: float) -> None:
        self.found.setdefault(name, []).append(value)
