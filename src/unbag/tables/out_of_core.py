"""Fit a table larger than memory: ridge and nets on bags that are streamed from disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unbag.estimators import BagClassifier, BagRidgeClassifier
from unbag.evaluation import Estimate, estimate_risk
from unbag.parallel import get_executor
from unbag.rules import get_rule
from unbag.tables.index import BagIndex
from unbag.tables.options import FitOptions
from unbag.tables.parts import BagParts
from unbag.tables.streaming import train_stream
from unbag.training import Settings, Trial, TrialResult, held_out_risk
from unbag.training.scoring import scores_of

__all__ = ["fit_streamed", "net_of", "streamed_ridge"]

LEARNING_RATE = 3e-3


def fit_streamed(
    parts: BagParts, models: Sequence[str], options: FitOptions
) -> tuple[Any, dict[str, Estimate]]:
    """Select the model with the smallest square risk on the choosing bags, and refit it.

    Returns the classifier, and the risk of each model, the smallest first. In memory are two parts,
    and the choosing bags.
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
            name, scores = result.trial.rule.name, scores_of(result, choosing.X)
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
    n_outputs = 1 if bags.proportions.ndim == 1 else bags.proportions.shape[1]
    return clf.adopt(result, task=bags.task, n_outputs=n_outputs, n_features=n_features)
