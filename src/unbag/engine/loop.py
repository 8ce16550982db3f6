"""The one training loop: a list of trials in, a list of results out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from unbag.bags import Bags
from unbag.engine.adam import StackedAdam
from unbag.engine.batches import TrialData, as_inputs, as_tensor, cut_stack, trial_data
from unbag.engine.learner import Learner, SingleLearner, StackedLearner, why_not_stackable
from unbag.engine.monitor import Monitor, check_names
from unbag.engine.progress import Tick, progress_bar
from unbag.engine.record import Record
from unbag.engine.step import GraphedStep, Precision, Step
from unbag.engine.trial import Trial, TrialResult
from unbag.errors import StackingWarning
from unbag.models import ModelBuilder, Standardize, get_model
from unbag.randomness import derive_seed

__all__ = ["Settings", "train"]

# Instances in a minibatch when the user does not say how many bags; the paper's number.
INSTANCES_PER_BATCH = 1000
# Small data needs steps more than it needs large batches.
MIN_BATCHES = 32


@dataclass(frozen=True)
class Settings:
    """How a stack is trained; the same for all its trials.

    Parameters
    ----------
    max_epochs : int
    bags_per_batch : int, optional
        None takes as many as make about 1000 instances, but leaves at least 32 batches an epoch
        if there are bags enough for batches of four.
    patience : int, optional
        Stop a trial after this many epochs without a better `criterion`, and keep its best weights.
    criterion : str, optional
        Name of the monitor that decides which epoch is best; None keeps the last epoch.
    redraw : bool
        Whether each epoch cuts the bags into batches anew; the paper draws them once.
    schedule : {"constant", "cosine"}
        Learning rate over the epochs.
    device : str
    precision : {"float32", "bfloat16"}
        Of the forward pass; weights are always single precision.
    compile : bool
        Compile models that are trained one at a time.
    progress : bool
        Show a progress bar.
    """

    max_epochs: int = 100
    bags_per_batch: int | None = None
    patience: int | None = None
    criterion: str | None = None
    redraw: bool = False
    schedule: Literal["constant", "cosine"] = "constant"
    device: str = "cpu"
    precision: Precision = "float32"
    compile: bool = False
    progress: bool = False

    def rate_factor(self, epoch: int) -> float:
        """Learning rate of an epoch as a share of its base."""
        if self.schedule == "constant":
            return 1.0
        return 0.5 * (1 + math.cos(math.pi * epoch / self.max_epochs))

    def batch_of(self, bags: Bags) -> int:
        """Bags in a batch."""
        if self.bags_per_batch is not None:
            return self.bags_per_batch
        wanted = round(INSTANCES_PER_BATCH / bags.sizes.mean())
        return max(4, min(wanted, bags.n_bags // MIN_BATCHES))


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
    check_names(monitors)
    each = [bags] * len(trials) if isinstance(bags, Bags) else list(bags)
    device = torch.device(settings.device)
    data = [
        trial_data(t, b, bags_per_batch=settings.batch_of(b))
        for t, b in zip(trials, each, strict=True)
    ]
    X = as_tensor(each[0].X, device)
    monitors = [monitor.on(device) for monitor in monitors]
    build = get_model(model)
    groups = _groups(trials, data, _stackable(trials, build, each[0], X))
    results: dict[int, TrialResult] = {}
    total = settings.max_epochs * len(groups)
    with progress_bar("training", total, show=settings.progress) as tick:
        for group in groups:
            stack = _Stack([trials[i] for i in group], [data[i] for i in group], X, build, settings)
            finished = stack.run(monitors, tick)
            results |= dict(zip(group, finished, strict=True))
            if finished[0].stopped == "interrupted":
                break
    return [results[i] for i in sorted(results)]


def _stackable(trials: Sequence[Trial], build: ModelBuilder, bags: Bags, X: Tensor) -> bool:
    if len(trials) < 2:
        return False
    models = [_seeded_model(build, t, bags, X) for t in trials[:2]]
    reason = why_not_stackable(models, as_inputs(X[:2]))
    if reason is not None:
        warnings.warn(
            f"The {len(trials)} trials are trained one after the other, because this model cannot "
            f"be stacked: {reason}.",
            StackingWarning,
            stacklevel=3,
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


def _seeded_model(build: ModelBuilder, trial: Trial, bags: Bags, X: Tensor) -> nn.Module:
    """Build a model whose initial weights follow from the trial's seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(trial.seed, "weights"))
        model = build(tuple(X.shape[1:]), bags.n_outputs)
    for module in model.modules():
        if isinstance(module, Standardize):
            module.adapt(_chunks(X, bags))
    return model.to(X.device)


def _chunks(X: Tensor, bags: Bags, size: int = 10_000) -> Iterator[Tensor]:
    """Training instances, some at a time, so that no second copy of them exists."""
    for start in range(0, bags.n_instances, size):
        rows = torch.as_tensor(bags.rows[start : start + size], device=X.device)
        yield as_inputs(X[rows])


class _Stack:
    """Trials that are trained together, and everything their loop needs."""

    def __init__(
        self,
        trials: Sequence[Trial],
        data: Sequence[TrialData],
        X: Tensor,
        build: ModelBuilder,
        settings: Settings,
    ) -> None:
        self.trials, self.data, self.settings, self.device = trials, data, settings, X.device
        self.input_shape = tuple(X.shape[1:])
        models = [_seeded_model(build, t, d.bags, X) for t, d in zip(trials, data, strict=True)]
        self.learner = self._learner(models)
        rates = torch.tensor([t.learning_rate for t in trials], device=X.device)
        self.optimizer = StackedAdam(self.learner.parameters, rates, stacked=len(trials) > 1)
        prior = torch.tensor(
            np.array([d.prior for d in data]), dtype=torch.float32, device=X.device
        )
        self.batches = cut_stack(data, X.device)
        task = data[0].bags.task
        step = Step(
            self.learner,
            self.optimizer,
            trials,
            X,
            prior,
            task=task,
            precision=settings.precision,
        )
        self.step = GraphedStep(step) if X.device.type == "cuda" else step

    def _learner(self, models: list[nn.Module]) -> Learner:
        if len(models) > 1:
            return StackedLearner(models)
        forward = torch.compile(models[0]) if self.settings.compile else None
        return SingleLearner(models[0], forward=forward)

    def run(self, monitors: Sequence[Monitor], tick: Tick) -> list[TrialResult]:
        """Train until every trial is done, or the user interrupts."""
        record = Record(self.learner, self.settings.criterion, self.settings.patience)
        try:
            with torch.random.fork_rng():
                torch.manual_seed(derive_seed(self.trials[0].seed, "training"))
                for epoch in range(self.settings.max_epochs):
                    self._epoch(epoch)
                    record.add(self._measure(monitors))
                    tick(record.summary())
                    if record.finished:
                        break
        except KeyboardInterrupt:
            record.interrupted = True
        return record.results(self.trials, self.input_shape)

    def _epoch(self, epoch: int) -> None:
        self.optimizer.scale_rates(self.settings.rate_factor(epoch))
        if self.settings.redraw and epoch > 0:
            self.batches = cut_stack([d.redrawn(epoch) for d in self.data], self.device)
        self.learner.train(True)
        self.step.loss_sum.zero_()
        for batch in self.batches:
            self.step(batch)

    def _measure(self, monitors: Sequence[Monitor]) -> dict[str, Tensor]:
        self.learner.train(False)
        values = {"loss": self.step.loss_sum / len(self.batches)}
        return values | {monitor.name: monitor(self.learner) for monitor in monitors}
