"""What drives a model of a table: the importance of its columns on held-out bags."""

from __future__ import annotations

from typing import Any

from unbag.bags import Bags
from unbag.bags.holdout import take_bags
from unbag.estimators.tree_stopping import gathered
from unbag.evaluation import ColumnImportance, column_importance
from unbag.frames import TableEncoder

__all__ = ["table_importance"]

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
    places, start = {}, 0
    for column in encoder.used:
        places[column.name] = list(range(start, start + len(column.features)))
        start += len(column.features)
    max_rows = max(SCORED_ROWS // len(places), 500)
    return column_importance(
        classifier,
        gathered(bags.take(take_bags(bags.sizes, max_rows=max_rows, seed=seed))),
        columns=places,
        grouping="natural" if natural else "random",
        n_repeats=1,
        random_state=seed,
    )
