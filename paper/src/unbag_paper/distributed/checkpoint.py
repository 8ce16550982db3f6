"""The state of a training after an epoch, on disk: whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save
from torch import Tensor

from unbag.bags import Bags
from unbag.training.stack import Stack
from unbag_paper.compiled.monitors import Monitor
from unbag_paper.errors import StoreError

__all__ = ["Checkpoints", "description"]

FORMAT = 3


class Checkpoints:
    """A folder of one training's states, of which the last is kept.

    Each is a folder ``epoch-000012`` of tensors and a description, written under another name
    first. All workers read; the first writes.

    Parameters
    ----------
    folder : path
    about : dict
        What a state must be of to go on from, by `description`.
    """

    def __init__(self, folder: str | Path, about: Mapping[str, Any]) -> None:
        self.folder, self.about = Path(folder), dict(about)

    def save(self, stack: Stack, epoch: int) -> None:
        """Write the state after an epoch, then remove older ones."""
        if dist.get_rank() != 0:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / "epoch.part"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        tensors = {n: t.detach().cpu().contiguous() for n, t in state_of(stack).items()}
        # `save_file` would let nobody else read it.
        (temporary / "state.safetensors").write_bytes(save(tensors))
        text = json.dumps(self.about | {"epoch": epoch}, indent=2, sort_keys=True)
        (temporary / "state.json").write_text(text + "\n", encoding="utf-8")
        temporary.rename(self.folder / f"epoch-{epoch:06d}")
        for old in self._epochs()[:-1]:
            shutil.rmtree(self.folder / f"epoch-{old:06d}")

    def restore(self, stack: Stack) -> int:
        """Put the last saved state into a fresh stack; the number of epochs it holds."""
        # The first worker decides, because another may look at a folder that is just changing.
        newest = [max(self._epochs(), default=-1)]
        dist.broadcast_object_list(newest, 0)
        if newest[0] < 0:
            return 0
        folder = self.folder / f"epoch-{newest[0]:06d}"
        found = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        differing = [name for name in self.about if found.get(name) != self.about[name]]
        if differing:
            words = [f"{n} is {found.get(n)!r}, wanted {self.about[n]!r}" for n in differing]
            raise StoreError(
                f"{folder} is the state of another training: {'; '.join(words)}. "
                "Name another folder, or remove this one."
            )
        put_state(stack, load_file(folder / "state.safetensors"))
        dist.barrier()  # nobody removes the folder before all have read it
        return newest[0] + 1

    def _epochs(self) -> list[int]:
        return sorted(int(path.name[6:]) for path in self.folder.glob("epoch-*"))


def description(stack: Stack, table: Bags, monitors: Sequence[Monitor]) -> dict[str, Any]:
    """What must not change for a training to go on, as JSON holds it; long things by a digest.

    Of the instances, which may be many and anywhere, only the shape is told.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in stack.learner.state.items()}
    about = {
        "format": FORMAT,
        "trial": repr(stack.trials[0]),
        "task": table.task,
        "n_bags": table.n_bags,
        "sizes": _digest(table.sizes),
        "proportions": _digest(table.proportions),
        "noise_variance": None if table.noise_variance is None else _digest(table.noise_variance),
        "input_shape": stack.input_shape,
        "model": hashlib.sha256(repr(shapes).encode()).hexdigest()[:32],
        "monitors": sorted(monitor.name for monitor in monitors),
    }
    settings = asdict(stack.settings) | {"bags_per_batch": stack.data[0].bags_per_batch}
    about |= {name: value for name, value in settings.items() if name not in _MAY_CHANGE}
    described: dict[str, Any] = json.loads(json.dumps(about, default=int))
    return described


# How long, where and how fast a training goes does not make it another.
_MAY_CHANGE = {"max_epochs", "device", "compile", "side_by_side", "progress"}


def _digest(values: Any) -> str:
    array = np.ascontiguousarray(values, dtype=float)
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()[:32]


def state_of(stack: Stack) -> dict[str, Tensor]:
    """Everything that the next epoch depends on, by name."""
    optimizer, step = stack.optimizer, stack.step
    state = {f"model.{name}": tensor for name, tensor in stack.learner.state.items()}
    state |= _numbered("first", optimizer.first) | _numbered("second", optimizer.second)
    state |= _numbered("decay", optimizer.decays) | {"rule.0": step.state}
    names = stack.epochs[0] if stack.epochs else {}
    return state | {
        f"history.{name}": torch.stack([epoch[name] for epoch in stack.epochs]) for name in names
    }


@torch.no_grad()
def put_state(stack: Stack, saved: Mapping[str, Tensor]) -> None:
    """Copy saved tensors into those of a stack, in place."""
    for name, tensor in state_of(stack).items():
        tensor.copy_(saved[name])
    history = {n.removeprefix("history."): t for n, t in saved.items() if n.startswith("history.")}
    n_epochs = len(history["loss"])
    stack.epochs = [
        {name: values[i].to(stack.device) for name, values in history.items()}
        for i in range(n_epochs)
    ]


def _numbered(name: str, tensors: list[Any]) -> dict[str, Tensor]:
    return {f"{name}.{number}": tensor for number, tensor in enumerate(tensors)}
