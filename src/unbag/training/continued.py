"""Trials in training that can be thinned out: some of them go on, as if nothing had happened."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from unbag.bags import Bags
from unbag.models import ModelBuilder
from unbag.randomness import derive_seed
from unbag.training.loop import prepare, run_epoch, torch_switches
from unbag.training.monitor import Monitor
from unbag.training.progress import progress_bar
from unbag.training.settings import Settings
from unbag.training.trial import Trial, TrialResult

__all__ = ["Training"]


class Training:
    """Trials that are trained up to some epoch, and from there without those that are given up.

    Parameters are those of `train`; ``settings.max_epochs`` is not used.

    Notes
    -----
    A trial that goes on gives what it gives when it is never stopped, up to rounding, unless its
    model draws from torch's generator of a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> from unbag import make_bags
    >>> X = np.random.default_rng(0).normal(size=(400, 2)).astype("float32")
    >>> bags = make_bags(X, X[:, 0] > 0, bag_size=10, seed=0)
    >>> training = Training([Trial(seed=0), Trial(seed=1), Trial(seed=2)], bags)
    >>> training.run(until=2)
    >>> training.keep([0, 2])
    >>> training.run(until=5)
    >>> [(result.trial.seed, result.n_epochs) for result in training.results()]
    [(0, 5), (2, 5)]
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        bags: Bags | Sequence[Bags],
        *,
        model: str | ModelBuilder = "mlp",
        monitors: Sequence[Monitor] = (),
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or Settings()
        plan = prepare(trials, bags, model, monitors, self.settings)
        self.monitors, self.groups = plan.monitors, plan.groups
        self.stacks = [plan.stack(group) for group in self.groups]
        seeds = [derive_seed(stack.trials[0].seed, "training") for stack in self.stacks]
        self._random_states = [torch.Generator().manual_seed(seed).get_state() for seed in seeds]

    def run(self, *, until: int) -> None:
        """Train until every trial has had so many epochs, or has run out of patience."""
        begun = min(len(stack.record.epochs) for stack in self.stacks)
        total = len(self.stacks) * (until - begun)
        with (
            progress_bar("training", total, show=self.settings.progress) as tick,
            torch_switches(self.settings),
        ):
            for number, stack in enumerate(self.stacks):
                with torch.random.fork_rng():
                    torch.set_rng_state(self._random_states[number])
                    for epoch in range(len(stack.record.epochs), until):
                        if not stack.finished:
                            run_epoch([stack], self.monitors, epoch)
                        tick(stack.summary)
                    self._random_states[number] = torch.get_rng_state()

    def keep(self, chosen: Sequence[int]) -> None:
        """Go on with these trials, numbered in the order of `results`; they are numbered anew."""
        wanted = set(chosen)
        numbers = {old: new for new, old in enumerate(sorted(wanted))}
        kept = [
            (stack, [numbers[i] for i in group if i in wanted], state)
            for stack, group, state in zip(
                self.stacks, self.groups, self._random_states, strict=True
            )
            if wanted & set(group)
        ]
        for stack, group in zip(self.stacks, self.groups, strict=True):
            positions = [p for p, i in enumerate(group) if i in wanted]
            if 0 < len(positions) < len(group):
                stack.keep(positions)
        self.stacks = [stack for stack, _, _ in kept]
        self.groups = [group for _, group, _ in kept]
        self._random_states = [state for _, _, state in kept]

    def results(self) -> list[TrialResult]:
        """One result a trial that is still there, in their order."""
        found: dict[int, TrialResult] = {}
        for group, stack in zip(self.groups, self.stacks, strict=True):
            found |= dict(zip(group, stack.results(), strict=True))
        return [found[number] for number in sorted(found)]
