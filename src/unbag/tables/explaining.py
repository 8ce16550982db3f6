"""Column importance and learning curve of a fitted table."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbag.bags import Bags
from unbag.bags.holdout import take_bags
from unbag.estimators import BagStackingClassifier
from unbag.evaluation import (
    BagLearningCurve,
    ColumnImportance,
    bag_learning_curve,
    column_importance,
)
from unbag.frames import TableEncoder
from unbag.parallel import Executor

__all__ = ["table_importance", "table_learning_curve"]

# Rows scored in all: a few seconds. One permutation of more bags tells more than several of fewer.
SCORED_ROWS = 300_000


def table_importance(
    classifier: Any, bags: Bags, encoder: TableEncoder, *, seed: int = 0
) -> ColumnImportance | None:
    """Importance of whole columns for a classifier of encoded rows, on some of the bags.

    None for natural groups with several classes or labels, or with noise: these have no measure.
    """
    natural = getattr(classifier, "grouping_", "random") == "natural"
    if natural and (bags.task != "binary" or bags.noise_variance is not None):
        return None
    places = {column.name: list(range(s.start, s.stop)) for column, s in encoder.places}
    max_rows = max(SCORED_ROWS // len(places), 500)
    return column_importance(
        classifier,
        bags.take(take_bags(bags.sizes, max_rows=max_rows, seed=seed)).gathered(),
        columns=places,
        grouping="natural" if natural else "random",
        n_repeats=1,
        random_state=seed,
    )


def table_learning_curve(bags: Bags, *, executor: Executor, seed: int = 0) -> BagLearningCurve:
    """Cross-fitted error of quick stacks against the number of bags."""
    bags = bags.gathered()
    noise = bags.noise_variance
    return bag_learning_curve(
        BagStackingClassifier(grouping="random", quick=True, random_state=seed),
        bags.X,
        np.repeat(bags.proportions, bags.sizes, axis=0),
        bags=np.repeat(np.arange(bags.n_bags), bags.sizes),
        noise_variance=None if noise is None else np.repeat(noise, bags.sizes),
        n_splits=4,
        executor=executor,
        random_state=seed,
    )
