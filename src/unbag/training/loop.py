"""The training loop: a list of trials in, a list of results out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from unbag.arguments import check_some
from unbag.bags import Bags
from unbag.errors import BagDataError, StackingWarning
from unbag.models import ModelBuilder, get_model
from unbag.randomness import derive_seed
from unbag.training.batches import TrialData, as_inputs, as_tensor, trial_data
from unbag.training.learners import why_not_stackable
from unbag.training.progress import progress_bar
from unbag.training.settings import Settings
from unbag.training.stack import Stack, seeded_model
from unbag.training.trial import Trial, TrialResult


def train(
    trials: Sequence[Trial],
    bags: Bags | Sequence[Bags],
    *,
    model: str | ModelBuilder = "mlp",
    settings: Settings | None = None,
    resume: Sequence[TrialResult] | None = None,
) -> list[TrialResult]:
    """Train many trials at once, and return their results in order.

    Trials whose batches have the same layout are stacked and trained in one vectorised loop. If a
    model cannot be stacked, trials are trained in turn, with a `StackingWarning`. Several `bags`,
    one per trial, must share one `X`. With `resume`, one result per trial, training starts from its
    weights with a fresh optimizer, possibly on other bags, and its history is continued. After
    Ctrl-C only trials that had started are returned.

    A trial gives the same result alone and in a stack, up to rounding. On a CPU the same call gives
    the same bits.
    """
    settings = settings or Settings()
    training = Training(trials, bags, model=model, settings=settings, resume=resume)
    training.run(until=settings.max_epochs)
    results = training.results()
    if resume is not None:
        results = [new.after(old) for new, old in zip(results, resume, strict=False)]
    return results


class Training:
    """Trials in training: `run` them up to an epoch, and continue.

    Parameters are those of `train`; ``settings.max_epochs`` only scales a cosine schedule.
    Continued training equals uninterrupted training up to rounding, unless a model draws from the
    generator of a GPU.
    """

    stack_kind: ClassVar[type[Stack]] = Stack
    stacks_at_once = 1

    def __init__(
        self,
        trials: Sequence[Trial],
        bags: Bags | Sequence[Bags],
        *,
        model: str | ModelBuilder = "mlp",
        settings: Settings | None = None,
        resume: Sequence[TrialResult] | None = None,
    ) -> None:
        check_some("trials", trials)
        self.settings = settings or Settings()
        device, build = torch.device(self.settings.device), get_model(model)
        each = [bags] * len(trials) if isinstance(bags, Bags) else list(bags)
        data = [trial_data(t, b, self.settings) for t, b in zip(trials, each, strict=True)]
        X = _common_instances(each, device)
        self.groups = _groups(trials, data, _stackable(trials, build, each[0], X))
        nets = None if resume is None else [result.model for result in resume]
        self.stacks = [
            self.stack_kind(
                [trials[i] for i in group],
                [data[i] for i in group],
                X,
                build,
                self.settings,
                start=None if nets is None else [nets[i] for i in group],
            )
            for group in self.groups
        ]
        # Of torch's generator at the start, for models that draw from it.
        seeds = [derive_seed(stack.trials[0].seed, "training") for stack in self.stacks]
        self._random_states = [torch.Generator().manual_seed(s).get_state() for s in seeds]

    def run(self, *, until: int) -> None:
        """Train until every trial has had `until` epochs.

        Ctrl-C stops it; trials that had not started are dropped.
        """
        at_once = self.stacks_at_once
        chunks = range(0, len(self.stacks), at_once)
        total = len(chunks) * (until - min(len(stack.epochs) for stack in self.stacks))
        with progress_bar("training", total, show=self.settings.progress) as tick:
            for first in chunks:
                try:
                    self._run_together(slice(first, first + at_once), until, tick)
                except KeyboardInterrupt:
                    self._interrupt(first, first + at_once)
                    return

    def _run_together(self, chosen: slice, until: int, tick: Any) -> None:
        stacks = self.stacks[chosen]
        with torch.random.fork_rng():
            torch.set_rng_state(self._random_states[chosen][0])
            for epoch in range(len(stacks[0].epochs), until):
                self._run_epoch(stacks, epoch)
                tick(stacks[0].summary)
            self._random_states[chosen.start] = torch.get_rng_state()

    def _run_epoch(self, stacks: Sequence[Stack], epoch: int) -> None:
        for stack in stacks:
            stack.run_epoch(epoch)

    def _interrupt(self, first: int, stop: int) -> None:
        for stack in self.stacks[first:stop]:
            stack.interrupted = True
        self.stacks, self.groups = self.stacks[:stop], self.groups[:stop]

    def results(self) -> list[TrialResult]:
        """Results of the trials in order."""
        found: dict[int, TrialResult] = {}
        for group, stack in zip(self.groups, self.stacks, strict=True):
            found |= dict(zip(group, stack.results(), strict=True))
        return [found[number] for number in sorted(found)]


def _common_instances(bags: Sequence[Bags], device: torch.device) -> Tensor:
    """The shared copy of the instances of all trials."""
    X = as_tensor(bags[0].X, device)
    others = {id(b.X): b.X for b in bags if b.X is not bags[0].X}
    for other in (as_tensor(given, device) for given in others.values()):
        if other.dtype != X.dtype or not torch.equal(other, X):
            raise BagDataError(
                "bags must share one X, but some of them hold other instances. Put the instances "
                "of all of them into one array, or call `train` once for each."
            )
    return X


def _stackable(trials: Sequence[Trial], build: ModelBuilder, bags: Bags, X: Tensor) -> bool:
    if len(trials) < 2:
        return False
    shape = tuple(X.shape[1:])
    models = [seeded_model(build, t, shape, bags.n_outputs).to(X.device) for t in trials[:2]]
    # Under vmap a convolution is a grouped one, which on a GPU is slower than one net at a time.
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
