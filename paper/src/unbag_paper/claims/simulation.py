"""Excess errors of exact learners on many simulated data sets at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unbag_paper.exact import CountRule, bag_loss
from unbag_paper.exact.finite import TIE_TOLERANCE
from unbag_paper.theory import BagCounts

__all__ = ["SampledProblem", "batches", "learned_excess", "tied_mask"]

Array = NDArray[Any]

# Predicted counts of one batch: about 30 MB of integers, with a few temporaries of that size.
BATCH_ENTRIES = 4_000_000


class SampledProblem(Protocol):
    """A construction that can be sampled as counts."""

    @property
    def excess_errors(self) -> Array:
        """Error of each hypothesis above the best one's."""
        ...

    def sample_counts(
        self, n_trials: int, n_bags: int, *, bag_size: int, generator: np.random.Generator
    ) -> BagCounts:
        """Many data sets, as counts."""
        ...


def batches(
    problem: SampledProblem,
    n_trials: int,
    n_bags: int,
    bag_size: int,
    generator: np.random.Generator,
) -> Iterator[BagCounts]:
    """Sample trials in batches that fit in memory."""
    entries = len(problem.excess_errors) * n_bags
    most = max(1, BATCH_ENTRIES // entries)
    done = 0
    while done < n_trials:
        step = min(most, n_trials - done)
        yield problem.sample_counts(step, n_bags, bag_size=bag_size, generator=generator)
        done += step


def tied_mask(values: Array) -> NDArray[np.bool_]:
    """Which hypotheses (last axis) attain the least value, up to the tie tolerance.

    Examples
    --------
    >>> tied_mask(np.array([[1.0, 2.0, 1.0]])).tolist()
    [[True, False, True]]
    """
    least = values.min(axis=-1, keepdims=True)
    slack = np.where(np.isfinite(least), TIE_TOLERANCE * np.maximum(1, np.abs(least)), 0)
    return np.asarray(values <= least + slack)


def learned_excess(
    problem: SampledProblem,
    rules: dict[str, CountRule],
    *,
    n_trials: int,
    n_bags: int,
    bag_size: int,
    generator: np.random.Generator,
    ties: str = "mean",
) -> dict[str, Array]:
    """Excess error of each rule's minimiser in each trial, all rules on the same data.

    `ties` is "mean" (one of the tied minimisers drawn at random, in expectation) or "worst".
    """
    found: dict[str, list[Array]] = {name: [] for name in rules}
    sizes = np.full(n_bags, bag_size)
    for counts in batches(problem, n_trials, n_bags, bag_size, generator):
        for name, rule in rules.items():
            values = bag_loss(rule, counts.predicted, sizes=sizes, positives=counts.positives)
            found[name].append(_settle(tied_mask(values), problem.excess_errors, ties))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _settle(tied: NDArray[np.bool_], excess: Array, ties: str) -> Array:
    if ties == "worst":
        return np.max(np.where(tied, excess, 0.0), axis=-1)
    return np.asarray(tied @ excess / tied.sum(axis=-1))
