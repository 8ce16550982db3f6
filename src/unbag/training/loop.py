"""The one training loop: a list of trials in, a list of results out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unbag.arguments import check_some
from unbag.bags import Bags
from unbag.errors import BagDataError, StackingWarning
from unbag.models import ModelBuilder, get_model
from unbag.randomness import derive_seed
from unbag.training.batches import TrialData, as_inputs, as_tensor, trial_data
from unbag.training.learners import why_not_stackable
from unbag.training.monitor import Monitor, check_names, on_device
from unbag.training.progress import Tick, progress_bar
from unbag.training.settings import Precision, Settings
from unbag.training.stack import Stack, seeded_model
from unbag.training.trial import Trial, TrialResult

__all__ = ["Plan", "prepare", "run_epoch", "torch_switches", "train"]

_MOST_FORMS = 200  # of one function that are compiled


def train(
    trials: Sequence[Trial],
    bags: Bags | Sequence[Bags],
    *,
    model: str | ModelBuilder = "mlp",
    monitors: Sequence[Monitor] = (),
    settings: Settings | None = None,
) -> list[TrialResult]:
    """Train many trials at once.

    Trials whose batches have one layout are stacked and trained in one vectorised loop; a model
    that cannot be stacked is trained trial by trial, with a `StackingWarning` that says why.

    Parameters
    ----------
    trials : sequence of Trial
        Any mix of rules, learning rates and seeds.
    bags : Bags, or one for each trial
        If several, they share one `X`.
    model : str or function
        Name of an architecture, or a function ``(input_shape, n_outputs) -> torch.nn.Module``.
    monitors : sequence of Monitor
        Measured after each epoch.
    settings : Settings, optional

    Returns
    -------
    list of TrialResult
        In the order of `trials`. On Ctrl-C, the trials begun so far, as they were.

    Notes
    -----
    A trial gives the same result alone and in a stack, up to rounding. On a CPU the same call gives
    the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> from unbag import make_bags
    >>> X = np.random.default_rng(0).normal(size=(400, 2)).astype("float32")
    >>> bags = make_bags(X, X[:, 0] > 0, bag_size=10, seed=0)
    >>> [result] = train([Trial(seed=0)], bags, settings=Settings(max_epochs=3))
    >>> result.history["loss"].shape
    (3,)
    """
    settings = settings or Settings()
    plan = prepare(trials, bags, model, monitors, settings)
    at_once = settings.side_by_side if plan.X.is_cuda else 1
    results: dict[int, TrialResult] = {}
    total = settings.max_epochs * math.ceil(len(plan.groups) / at_once)
    with (
        progress_bar("training", total, show=settings.progress) as tick,
        torch_switches(settings),
    ):
        for start in range(0, len(plan.groups), at_once):
            chosen = plan.groups[start : start + at_once]
            stacks = [plan.stack(group) for group in chosen]
            interrupted = _run(stacks, plan.monitors, settings.max_epochs, tick)
            for group, stack in zip(chosen, stacks, strict=True):
                results |= dict(zip(group, stack.results(), strict=True))
            if interrupted:
                break
    return [results[i] for i in sorted(results)]


@dataclass(frozen=True)
class Plan:
    """Trials with their data on the device, and which of them train together."""

    trials: Sequence[Trial]
    data: list[TrialData]
    X: Tensor
    build: ModelBuilder
    settings: Settings
    monitors: list[Monitor]
    groups: list[list[int]]

    def stack(self, group: list[int]) -> Stack:
        """Set up the trials of a group."""
        trials, data = [self.trials[i] for i in group], [self.data[i] for i in group]
        return Stack(trials, data, self.X, self.build, self.settings)


def prepare(
    trials: Sequence[Trial],
    bags: Bags | Sequence[Bags],
    model: str | ModelBuilder,
    monitors: Sequence[Monitor],
    settings: Settings,
) -> Plan:
    """Check the arguments of `train`, draw the batches and group the trials."""
    check_names(monitors)
    check_some("trials", trials)
    each = [bags] * len(trials) if isinstance(bags, Bags) else list(bags)
    device = torch.device(settings.device)
    data = [
        trial_data(t, b, bags_per_batch=settings.batch_of(b), shuffle=settings.shuffle)
        for t, b in zip(trials, each, strict=True)
    ]
    X, build = _common_instances(each, device), get_model(model)
    groups = _groups(trials, data, _stackable(trials, build, each[0], X))
    here = on_device(monitors, device)
    return Plan(trials, data, X, build, settings, here, groups)


def _common_instances(bags: Sequence[Bags], device: torch.device) -> Tensor:
    """The one copy of the instances that all trials train on."""
    X = as_tensor(bags[0].X, device)
    others = {id(b.X): b.X for b in bags if b.X is not bags[0].X}
    for other in (as_tensor(given, device) for given in others.values()):
        if other.dtype != X.dtype or not torch.equal(other, X):
            raise BagDataError(
                "bags must share one X, but some of them hold other instances. Put the instances "
                "of all of them into one array, or call `train` once for each."
            )
    return X


def _run(stacks: list[Stack], monitors: Sequence[Monitor], max_epochs: int, tick: Tick) -> bool:
    """Train stacks side by side until every trial is done; True if the user interrupted."""
    try:
        with torch.random.fork_rng():
            torch.manual_seed(derive_seed(stacks[0].trials[0].seed, "training"))
            for epoch in range(max_epochs):
                run_epoch(stacks, monitors, epoch)
                tick(stacks[0].summary)
                if all(stack.finished for stack in stacks):
                    break
    except KeyboardInterrupt:
        for stack in stacks:
            stack.record.interrupted = True
        return True
    return False


def run_epoch(stacks: list[Stack], monitors: Sequence[Monitor], epoch: int) -> None:
    """One epoch of every stack, step by step in turn, so that a GPU overlaps them.

    In the first epoch steps are captured, which must not be overlapped.
    """
    if epoch == 0 and len(stacks) > 1:
        for stack in stacks:
            run_epoch([stack], monitors, epoch)
            torch.cuda.synchronize()
        return
    for stack in stacks:
        with stack.on_stream():
            stack.begin(epoch)
    for number in range(max(len(stack.batches) for stack in stacks)):
        for stack in stacks:
            if number < len(stack.batches):
                with stack.on_stream():
                    stack.step(stack.batches[number])
    for stack in stacks:
        with stack.on_stream():
            stack.end(monitors)


def _stackable(trials: Sequence[Trial], build: ModelBuilder, bags: Bags, X: Tensor) -> bool:
    if len(trials) < 2:
        return False
    models = [seeded_model(build, t, bags, X) for t in trials[:2]]
    # Under vmap a convolution is a grouped one, which on a GPU is slower than trials side by side.
    if X.is_cuda and any(isinstance(m, nn.Conv2d) for m in models[0].modules()):
        return False
    reason = why_not_stackable(models, as_inputs(X[:2]))
    if reason is not None:
        warnings.warn(
            f"The {len(trials)} trials are trained one after the other, because this model cannot "
            f"be stacked: {reason}.",
            StackingWarning,
            stacklevel=4,
        )
    return reason is None


def _groups(trials: Sequence[Trial], data: Sequence[TrialData], stackable: bool) -> list[list[int]]:
    """Trials that train together, those of one rule side by side."""
    if not stackable:
        return [[i] for i in range(len(trials))]
    groups: dict[Any, list[int]] = {}
    for i, d in enumerate(data):
        groups.setdefault(d.layout, []).append(i)
    return [sorted(group, key=lambda i: repr(trials[i].rule)) for group in groups.values()]


@contextmanager
def torch_switches(settings: Settings) -> Iterator[None]:
    """Torch's own settings as a training needs them, put back afterwards."""
    compiling = _room_to_compile() if settings.compile else nullcontext()
    with _matrix_precision(settings.precision), compiling:
        yield


@contextmanager
def _matrix_precision(precision: Precision) -> Iterator[None]:
    """Allow a GPU's matrix units to round products to TF32."""
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, convolution.allow_tf32
    matmul.allow_tf32 = convolution.allow_tf32 = precision != "float32"
    try:
        yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32 = before


def _room_to_compile() -> AbstractContextManager[None]:
    """Nets and batches come in many forms; after eight, torch would go on uncompiled."""
    from torch._dynamo import config

    return config.patch(cache_size_limit=_MOST_FORMS)  # its name in every version
