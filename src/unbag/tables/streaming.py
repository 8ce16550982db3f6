"""Train nets on bags that do not fit in memory, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from unbag.bags import Bags, cut_batches
from unbag.frames.chunks import prefetch
from unbag.models import ModelBuilder, Moments, get_model, join_moments, moments_of
from unbag.randomness import derive_seed, numpy_generator
from unbag.tables.parts import BagParts
from unbag.training.adam import StackedAdam
from unbag.training.batches import Batch, make_batch
from unbag.training.learners import Learner, learner_of
from unbag.training.monitor import Monitor, measure_all, on_device
from unbag.training.progress import progress_bar
from unbag.training.record import Record
from unbag.training.settings import INSTANCES_PER_BATCH, Settings
from unbag.training.stack import Step, seeded_model
from unbag.training.trial import Trial, TrialResult

__all__ = ["train_stream"]

CPU = torch.device("cpu")
SAMPLE_ROWS = 200_000  # at least, if there are so many, tell by what features are standardised


def train_stream(
    trials: Sequence[Trial],
    parts: BagParts,
    *,
    groups: Sequence[str],
    model: str | ModelBuilder = "mlp",
    monitors: Sequence[Monitor] = (),
    settings: Settings | None = None,
) -> list[TrialResult]:
    """Train trials on bags on disk; two parts are in memory, one of them read ahead.

    Parameters
    ----------
    trials : sequence of Trial
        Trained at once on the same batches, drawn by the first one's seed.
    parts : BagParts
    groups : sequence of str
        Groups of bags to train on.
    model, monitors, settings
        As for `train`; batches are redrawn each epoch and learning rates are constant.

    Notes
    -----
    Bags that outgrow a part are one batch: a first pass over their rows computes the logits, the
    rule's gradient follows from all of them, a second pass carries it to the weights. So the step
    is that of the whole bags, for every rule. Rules that need the prior have it from all training
    bags: with bags too many for memory, those set aside for it would change nothing. Where `train`
    standardises features by all rows, this does by those of a few parts, of bags at random, with
    200,000 rows or more.
    """
    settings = settings or Settings()
    stream = _Stream(trials, parts, groups, model, settings)
    monitors = on_device(monitors, CPU)
    with progress_bar("training", settings.max_epochs, show=settings.progress) as tick:
        for epoch in range(settings.max_epochs):
            stream.epoch(epoch)
            stream.learner.train(False)
            values = {"loss": stream.step.loss_sum / max(stream.n_steps, 1)}
            stream.record.add(values | measure_all(monitors, stream.learner))
            tick(stream.record.summary)
            if stream.record.finished:
                break
    return stream.record.results(trials, (parts.n_features,))


class _Stream:
    """Trials, their learner and what they are trained on."""

    def __init__(
        self,
        trials: Sequence[Trial],
        parts: BagParts,
        groups: Sequence[str],
        model: str | ModelBuilder,
        settings: Settings,
    ) -> None:
        self.parts, self.seed, self.n_trials = parts, trials[0].seed, len(trials)
        self.numbers = list(chain.from_iterable(parts.parts[name] for name in groups))
        self.learner = self._learner(trials, get_model(model))
        rates = torch.tensor([trial.learning_rate for trial in trials])
        optimizer = StackedAdam(self.learner.parameters, rates, stacked=len(trials) > 1)
        prior = torch.tensor(np.stack([self._prior()] * len(trials)), dtype=torch.float32)
        task = parts.index.task
        self.step = Step(self.learner, optimizer, trials, torch.empty(0), prior, task=task)
        self.record = Record(self.learner, settings)
        self.bags_per_batch = settings.bags_per_batch
        self.n_steps = 0

    def _learner(self, trials: Sequence[Trial], build: ModelBuilder) -> Learner:
        n_outputs = 1 if self.parts.index.proportions.ndim == 1 else self._prior().shape[0]
        shape, moments = (self.parts.n_features,), cache(self._moments)
        models = [seeded_model(build, trial, shape, n_outputs, moments) for trial in trials]
        return learner_of(models)

    def _moments(self) -> Moments:
        """Moments of the features, from a few parts: bags are assigned to parts at random."""
        sizes = np.bincount(self.parts.part_of + 1, self.parts.index.sizes)[1:]
        enough = np.searchsorted(np.cumsum(sizes[self.numbers]), SAMPLE_ROWS) + 1
        some = self.numbers[:enough]
        return join_moments(moments_of(torch.from_numpy(X)) for X, _ in self.parts.rows(some))

    def _prior(self) -> np.ndarray:
        index = self.parts.index
        here = np.isin(self.parts.part_of, self.numbers)
        return np.average(index.proportions[here], axis=0, weights=index.sizes[here])

    def epoch(self, epoch: int) -> None:
        """Train on every bag once."""
        self.learner.train(True)
        self.step.loss_sum.zero_()
        self.n_steps = 0
        parts = numpy_generator(self.seed, "parts", epoch).permutation(self.numbers).tolist()
        for part, bags in zip(parts, prefetch(map(self._read, parts)), strict=True):
            if bags is None:
                self._large_step(part)
                self.n_steps += 1
            else:
                self._train_part(bags, (epoch, part))

    def _read(self, part: int) -> Bags | None:
        """Bags of a part, unless they outgrow memory."""
        return None if part in self.parts.oversized else self.parts.bags(part)

    def _train_part(self, bags: Bags, name: tuple[int, int]) -> None:
        self.step.X = torch.from_numpy(bags.X)
        wanted = self.bags_per_batch or max(4, round(INSTANCES_PER_BATCH / bags.sizes.mean()))
        per_batch = min(wanted, bags.n_bags)
        seed = derive_seed(self.seed, *name)
        for positions in cut_batches(bags.n_bags, bags_per_batch=per_batch, seed=seed):
            self.step(self._batch(bags, positions))
            self.n_steps += 1

    def _batch(self, bags: Bags, positions: np.ndarray) -> Batch:
        return make_batch([(bags, positions)] * self.n_trials, CPU)

    def _large_step(self, part: int) -> None:
        """One exact step on bags of any size: logits first, then their gradient, chunk by chunk."""
        logits, codes = self._all_logits(part)
        bags = self.parts.bags_of([part], np.empty((len(codes), 0)), codes)
        given = logits.requires_grad_()
        batch = self._batch(bags, np.arange(bags.n_bags))
        losses = self.step.losses(given[:, torch.from_numpy(bags.rows)], batch)
        (slope,) = torch.autograd.grad(losses.sum(), given)
        totals = [torch.zeros_like(p) for p in self.learner.parameters]
        start = 0
        for X, _ in self.parts.rows([part]):
            out = self.learner.logits(self._inputs(X)).float()
            share = slope[:, start : start + len(X)]
            gradients = torch.autograd.grad(out, self.learner.parameters, share)
            torch._foreach_add_(totals, list(gradients))
            start += len(X)
        self.step.optimizer.step(tuple(totals))
        self.learner.advance()
        self.step.loss_sum += losses.detach()

    @torch.no_grad()
    def _all_logits(self, part: int) -> tuple[Tensor, np.ndarray]:
        found = [
            (self.learner.logits(self._inputs(X)).float(), codes)
            for X, codes in self.parts.rows([part])
        ]
        logits, codes = zip(*found, strict=True)
        return torch.cat(logits, dim=1), np.concatenate(codes)

    def _inputs(self, X: np.ndarray) -> Tensor:
        return torch.from_numpy(X).expand(self.n_trials, *X.shape)
