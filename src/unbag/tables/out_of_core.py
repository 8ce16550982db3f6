"""Fit a table larger than memory: ridge and nets on bags that are streamed from disk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbag.bags import Bags, cut_batches
from unbag.estimators import BagClassifier, BagRidgeClassifier
from unbag.evaluation import Estimate, estimate_risk
from unbag.frames.chunks import prefetch
from unbag.models import ModelBuilder, Moments, get_model, join_moments, moments_of
from unbag.parallel import get_executor
from unbag.randomness import derive_seed, numpy_generator
from unbag.rules import get_rule
from unbag.tables.index import BagIndex
from unbag.tables.options import FitOptions
from unbag.tables.parts import BagParts
from unbag.training import Trial, TrialResult, held_out_risk
from unbag.training.adam import StackedAdam
from unbag.training.batches import Batch, make_batch
from unbag.training.learners import learner_of
from unbag.training.monitor import Monitor, measure_all, on_device
from unbag.training.progress import progress_bar
from unbag.training.record import Record
from unbag.training.scoring import scores_of
from unbag.training.settings import INSTANCES_PER_BATCH, Settings
from unbag.training.stack import Step, seeded_model

LEARNING_RATE = 3e-3


def fit_streamed(
    parts: BagParts, models: Sequence[str], options: FitOptions
) -> tuple[Any, dict[str, Estimate]]:
    """Select the model with the smallest square risk on the choosing bags, and refit it.

    Returns the classifier, and the risk of each model, smallest first.
    """
    choosing, risks, epochs = parts.bags(*parts.parts["choosing"]), {}, {}
    if "ridge" in models:
        scores = streamed_ridge(parts, ["training"], options).predict_proba(choosing.X)
        risks["ridge"] = estimate_risk(scores, choosing, loss="square")
    nets = [name for name in models if name != "ridge"]
    if nets:
        monitor = held_out_risk(choosing, criterion="square")
        n_epochs = options.epochs_on(parts.index.n_rows)
        for result in _nets(nets, parts, ["training"], n_epochs, options, monitor=monitor):
            name = result.trial.rule.name
            scores = scores_of(result, choosing.X, task=choosing.task)
            risks[name] = estimate_risk(scores, choosing, loss="square")
            epochs[name] = result.best_epoch + 1
    risks = dict(sorted(risks.items(), key=lambda pair: pair[1].value))
    best, groups = next(iter(risks)), ["training", "choosing"]
    if best == "ridge":
        return streamed_ridge(parts, groups, options), risks
    [result] = _nets([best], parts, groups, epochs[best], options)
    return net_of(result, parts.index, parts.n_features), risks


def streamed_ridge(
    parts: BagParts, groups: Sequence[str], options: FitOptions
) -> BagRidgeClassifier:
    """Closed form, from the sums of the bags of some groups."""
    numbers = [part for name in groups for part in parts.parts[name]]
    executor = get_executor(n_jobs=options.jobs or 1, ray=options.ray)
    index, sums = parts.index, np.zeros((parts.index.n_bags, parts.n_features))
    for number, found in executor.finished(BagParts.sums, numbers, shared=parts):
        sums[parts.positions[numbers[number]]] = found
    here = np.isin(parts.part_of, numbers)
    noise = None if index.noise_variance is None else index.noise_variance[here]
    means, sizes = sums[here] / index.sizes[here, None], index.sizes[here]
    return BagRidgeClassifier().fit_means(
        means, index.proportions[here], sizes, noise_variance=noise, task=index.task
    )


def _nets(
    rules: Sequence[str],
    parts: BagParts,
    groups: Sequence[str],
    epochs: int,
    options: FitOptions,
    *,
    monitor: Any = None,
) -> list[TrialResult]:
    trials = [Trial(get_rule(name), LEARNING_RATE, options.seed) for name in rules]
    settings = Settings(
        max_epochs=epochs,
        criterion=None if monitor is None else "held_out_risk",
        redraw=True,
        progress=options.progress,
    )
    monitors = [] if monitor is None else [monitor]
    return train_stream(trials, parts, groups=groups, monitors=monitors, settings=settings)


def net_of(result: TrialResult, bags: BagIndex, n_features: int) -> BagClassifier:
    """A trained net as an estimator."""
    clf = BagClassifier(result.trial.rule, learning_rate=result.trial.learning_rate)
    n_outputs = np.size(bags.proportions[0])
    return clf.adopt(result, task=bags.task, n_outputs=n_outputs, n_features=n_features)


CPU = torch.device("cpu")
SAMPLE_ROWS = 200_000  # minimum for the moments that standardise features


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

    Batches are redrawn each epoch and learning rates are constant. Bags that outgrow a part form
    one batch: a first pass over their rows computes the logits and the gradient of the rule, a
    second pass carries it to the weights. So the step is exact for every rule. Features are
    standardised by a few random parts with 200,000 rows or more.
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
        self.numbers = [number for name in groups for number in parts.parts[name]]
        index, here = parts.index, np.isin(parts.part_of, self.numbers)
        prior = np.average(index.proportions[here], axis=0, weights=index.sizes[here])
        shape, moments, build = (parts.n_features,), cache(self._moments), get_model(model)
        models = [seeded_model(build, trial, shape, np.size(prior), moments) for trial in trials]
        self.learner = learner_of(models)
        rates = torch.tensor([trial.learning_rate for trial in trials])
        optimizer = StackedAdam(self.learner.parameters, rates, stacked=len(trials) > 1)
        priors = torch.tensor(np.stack([prior] * len(trials)), dtype=torch.float32)
        self.step = Step(self.learner, optimizer, trials, torch.empty(0), priors, task=index.task)
        self.record = Record(self.learner, settings)
        self.bags_per_batch = settings.bags_per_batch
        self.n_steps = 0

    def _moments(self) -> Moments:
        """Moments of the features, from a few parts: bags are assigned to parts at random."""
        sizes = np.bincount(self.parts.part_of + 1, self.parts.index.sizes)[1:]
        enough = np.searchsorted(np.cumsum(sizes[self.numbers]), SAMPLE_ROWS) + 1
        some = self.numbers[:enough]
        return join_moments(moments_of(torch.from_numpy(X)) for X, _ in self.parts.rows(some))

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
