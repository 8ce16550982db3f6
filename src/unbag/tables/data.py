"""Bags to train on, in memory or on disk, behind one interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.bags.holdout import MIN_BAGS, BagSplit, hold_out_bags
from unbag.errors import TableError
from unbag.estimators.boosting import BagBoostingClassifier, BoostingRule
from unbag.estimators.classifier import BagClassifier
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.estimators.tree_stopping import gathered
from unbag.tables.index import BagIndex
from unbag.tables.parts import BagParts, bag_sums
from unbag.tables.scan import BagTable, read_bags
from unbag.tables.streaming import train_stream
from unbag.training import Monitor, Settings, Trial, TrialResult, train

__all__ = ["BagsInMemory", "BagsOnDisk", "TrainingBags", "split_index"]

Array = NDArray[Any]
PATIENCE = 50


def split_index(
    index: BagIndex, *, share: float, seed: int, max_rows: int | None = None
) -> BagSplit:
    """Hold out a share of the bags to choose by, and as many to judge by."""
    if index.n_bags < MIN_BAGS:
        raise TableError(
            f"The table has {index.n_bags} bags; to train, choose and judge takes {MIN_BAGS}. With "
            "fewer, use unbag.BagRidgeClassifier and unbag.evaluation.cross_fit_risk in Python."
        )
    return hold_out_bags(index.sizes, judge=share, choose=share, seed=seed, max_rows=max_rows)


class BagsInMemory:
    """All rows in memory."""

    def __init__(self, table: BagTable, split: BagSplit) -> None:
        self.bags, self.index, self.split = read_bags(table), table.index, split

    def held_out(self, name: str) -> Bags:
        """Bags of a group, with instances of their own."""
        return gathered(self.bags.take(self.split.of([name])))

    def ridge(self, groups: Sequence[str]) -> BagRidgeClassifier:
        """Closed form on these groups."""
        return BagRidgeClassifier().fit_bags(self.bags.take(self.split.of(groups)))

    def boosting(
        self,
        rule: BoostingRule,
        groups: Sequence[str],
        *,
        n_trees: int,
        seed: int,
        held_out: Bags | None = None,
    ) -> BagBoostingClassifier:
        """Boosted trees on these groups; held-out bags, if given, choose how many."""
        clf = BagBoostingClassifier(
            rule=rule,
            n_estimators=n_trees,
            patience=None if held_out is None else PATIENCE,
            criterion="square",
            random_state=seed,
        )
        return clf.fit_bags(self.bags.take(self.split.of(groups)), held_out=held_out)

    def nets(
        self,
        trials: Sequence[Trial],
        groups: Sequence[str],
        monitors: Sequence[Monitor],
        settings: Settings,
    ) -> list[TrialResult]:
        """Nets trained on these groups."""
        bags = self.bags.take(self.split.of(groups))
        return train(trials, bags, monitors=monitors, settings=settings)


class BagsOnDisk:
    """Rows dealt to files; in memory are three parts, and what is held out."""

    def __init__(
        self,
        table: BagTable,
        split: BagSplit,
        *,
        rows_per_part: int,
        folder: str | Path | None = None,
    ) -> None:
        self.index, self.split = table.index, split
        groups = {name: getattr(split, name) for name in ("training", "choosing", "judging")}
        self.parts = BagParts(table, groups, rows_per_part=rows_per_part, folder=folder)

    def held_out(self, name: str) -> Bags:
        """Bags of a group; they were chosen to fit in memory."""
        return _joined([self.parts.bags(part) for part in self.parts.parts[name]])

    def ridge(self, groups: Sequence[str]) -> BagRidgeClassifier:
        """Closed form, from the sums of the bags."""
        numbers = [part for name in groups for part in self.parts.parts[name]]
        index, here = self.index, self.split.of(groups)
        sums = bag_sums(self.parts.rows(numbers), index.n_bags, self.parts.n_features)[here]
        noise = None if index.noise_variance is None else index.noise_variance[here]
        return BagRidgeClassifier().fit_means(
            sums / index.sizes[here, None],
            index.proportions[here],
            index.sizes[here],
            noise_variance=noise,
            task=index.task,
        )

    def nets(
        self,
        trials: Sequence[Trial],
        groups: Sequence[str],
        monitors: Sequence[Monitor],
        settings: Settings,
    ) -> list[TrialResult]:
        """Nets trained on these groups."""
        return train_stream(trials, self.parts, groups=groups, monitors=monitors, settings=settings)

    def close(self) -> None:
        """Remove the files."""
        self.parts.close()


TrainingBags: TypeAlias = BagsInMemory | BagsOnDisk
"""What fitting a table needs of its bags: held-out ones, and models trained on groups."""


def _joined(parts: Sequence[Bags]) -> Bags:
    """Bags of several parts, whose rows lie bag by bag, as one."""
    first = parts[0]
    noise = None
    if first.noise_variance is not None:
        noise = np.concatenate([p.noise_variance for p in parts if p.noise_variance is not None])
    X = np.concatenate([p.X[p.rows] for p in parts])
    return Bags(
        X,
        np.arange(len(X)),
        np.concatenate([p.sizes for p in parts]),
        np.concatenate([p.proportions for p in parts]),
        [name for p in parts for name in p.ids],
        noise,
        first.task,
    )


def net_of(result: TrialResult, bags: BagIndex, n_features: int) -> BagClassifier:
    """A trained net as an estimator."""
    clf = BagClassifier(result.trial.rule, learning_rate=result.trial.learning_rate)
    n_outputs = 1 if bags.proportions.ndim == 1 else bags.proportions.shape[1]
    return clf.adopt(result, task=bags.task, n_outputs=n_outputs, n_features=n_features)
