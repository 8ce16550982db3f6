"""Fit a table larger than memory: ridge and nets on bags that are streamed from disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.bags.holdout import BagSplit
from unbag.estimators import BagClassifier, BagRidgeClassifier
from unbag.evaluation import Estimate, estimate_risk
from unbag.parallel import get_executor
from unbag.rules import get_rule
from unbag.tables.index import BagIndex
from unbag.tables.options import FitOptions
from unbag.tables.parts import BagParts, sums_of_part
from unbag.tables.scan import BagTable
from unbag.tables.streaming import train_stream
from unbag.training import Settings, Trial, TrialResult, held_out_risk
from unbag.training.scoring import scores_of

__all__ = ["StreamedFit", "net_of"]

Array = NDArray[Any]
LEARNING_RATE = 3e-3


class StreamedFit:
    """Rows in files of whole bags; in memory are two parts, and the held-out bags.

    Parameters
    ----------
    table : BagTable
    split : BagSplit
        Bags that train, that choose between ridge and nets, and that judge the choice.
    options : FitOptions
    """

    def __init__(self, table: BagTable, split: BagSplit, options: FitOptions) -> None:
        self.table, self.index, self.split, self.options = table, table.index, split, options
        groups = {name: getattr(split, name) for name in ("training", "choosing", "judging")}
        n_rows, place = options.rows_per_part, options.folder
        self.parts = BagParts(table, groups, rows_per_part=n_rows, folder=place)

    def held_out(self, name: str) -> Bags:
        """Bags of a group, in memory: held-out groups are limited to fit."""
        return _joined([self.parts.bags(part) for part in self.parts.parts[name]])

    def fit(self, models: Sequence[str]) -> tuple[Any, dict[str, Estimate]]:
        """Select the model with the smallest square risk on the choosing bags, and refit it.

        Returns the classifier, and the risk of each model, the smallest first.
        """
        choosing, risks, epochs = self.held_out("choosing"), {}, {}
        if "ridge" in models:
            scores = self.ridge(["training"]).predict_proba(choosing.X)
            risks["ridge"] = estimate_risk(scores, choosing, loss="square")
        nets = [name for name in models if name != "ridge"]
        if nets:
            monitor = held_out_risk(choosing, criterion="square")
            n_epochs = self.options.epochs_on(self.index.n_rows)
            for result in self._nets(nets, ["training"], n_epochs, monitor=monitor):
                name, scores = result.trial.rule.name, scores_of(result, choosing.X)
                risks[name] = estimate_risk(scores, choosing, loss="square")
                epochs[name] = result.best_epoch + 1
        risks = dict(sorted(risks.items(), key=lambda pair: pair[1].value))
        best, groups = next(iter(risks)), ["training", "choosing"]
        if best == "ridge":
            return self.ridge(groups), risks
        [result] = self._nets([best], groups, epochs[best])
        return net_of(result, self.index, self.parts.n_features), risks

    def ridge(self, groups: Sequence[str]) -> BagRidgeClassifier:
        """Closed form, from the sums of the bags."""
        numbers = [part for name in groups for part in self.parts.parts[name]]
        index, here = self.index, self.split.of(groups)
        executor = get_executor(n_jobs=self.options.jobs or 1, ray=self.options.ray)
        sums = np.zeros((index.n_bags, self.parts.n_features))
        for number, found in executor.finished(sums_of_part, numbers, shared=self.parts):
            sums[self.parts.positions(numbers[number])] = found
        sums = sums[here]
        noise = None if index.noise_variance is None else index.noise_variance[here]
        means, sizes = sums / index.sizes[here, None], index.sizes[here]
        return BagRidgeClassifier().fit_means(
            means, index.proportions[here], sizes, noise_variance=noise, task=index.task
        )

    def _nets(
        self, rules: Sequence[str], groups: Sequence[str], epochs: int, *, monitor: Any = None
    ) -> list[TrialResult]:
        trials = [Trial(get_rule(name), LEARNING_RATE, self.options.seed) for name in rules]
        settings = Settings(
            max_epochs=epochs,
            criterion=None if monitor is None else "held_out_risk",
            redraw=True,
            progress=self.options.progress,
        )
        monitors = [] if monitor is None else [monitor]
        return train_stream(trials, self.parts, groups=groups, monitors=monitors, settings=settings)

    def __enter__(self) -> StreamedFit:
        return self

    def __exit__(self, *error: object) -> None:
        self.parts.close()


def _joined(parts: Sequence[Bags]) -> Bags:
    """Bags of several parts as one."""
    first = parts[0]
    noise = None
    if first.noise_variance is not None:
        noise = np.concatenate([p.noise_variance for p in parts if p.noise_variance is not None])
    X = np.concatenate([p.X[p.rows] for p in parts])
    sizes, proportions = (
        np.concatenate([getattr(p, n) for p in parts]) for n in ("sizes", "proportions")
    )
    ids = [name for p in parts for name in p.ids]
    return Bags(X, np.arange(len(X)), sizes, proportions, ids, noise, first.task)


def net_of(result: TrialResult, bags: BagIndex, n_features: int) -> BagClassifier:
    """A trained net as an estimator."""
    clf = BagClassifier(result.trial.rule, learning_rate=result.trial.learning_rate)
    n_outputs = 1 if bags.proportions.ndim == 1 else bags.proportions.shape[1]
    return clf.adopt(result, task=bags.task, n_outputs=n_outputs, n_features=n_features)
