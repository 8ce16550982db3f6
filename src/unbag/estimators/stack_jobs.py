"""Fits of a stack's candidates to parts of the bags, as jobs for processes or a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from sklearn.utils import get_tags

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.estimators.candidates import fit_candidate
from unbag.estimators.columns import standardised
from unbag.parallel import Executor
from unbag.training.progress import progress_bar

Fit = tuple[str, Any, Array]
"""Name and estimator of a candidate, and positions of its bags."""


class BagSource(Protocol):
    """Where the bags of a fit come from."""

    def take(self, positions: Array) -> Bags:
        """Bags at these positions, which rise."""


@dataclass(frozen=True, eq=False)
class StackData:
    """What every fit needs; sent to a worker once.

    Attributes
    ----------
    bags : Bags, or another object whose `take` gives bags by position
        Such as one that reads them from files, where the fit runs.
    centre, scale : array of shape (n_features,)
        For candidates that take no gaps.
    blocks : array of shape (n_bags,), optional
    """

    bags: BagSource
    centre: Array
    scale: Array
    blocks: Array | None

    def fit(self, estimator: Any, positions: Array) -> Any:
        """Fit a candidate to the bags at these positions."""
        data = self.bags.take(positions).gathered()
        blocks = None if self.blocks is None else self.blocks[positions]
        X = scaled_features(estimator, data.X, self.centre, self.scale)
        return fit_candidate(estimator, replace(data, X=X), blocks)


def scaled_features(estimator: Any, X: Array, centre: Array, scale: Array) -> Array:
    """Features as they are for candidates that take gaps; filled and scaled for others."""
    if get_tags(estimator).input_tags.allow_nan:
        return X
    return standardised(X, centre, scale)


def fit_all(executor: Executor, data: StackData, fits: Sequence[Fit], *, show: bool) -> list[Any]:
    """Fitted candidates in the order of `fits`; the progress bar names those at work."""
    waiting, found = dict(enumerate(name for name, *_ in fits)), {}
    jobs = [(estimator, positions) for _, estimator, positions in fits]
    with progress_bar("fitting", len(fits), show=show, text=_at_work(waiting, executor)) as tick:
        for number, model in executor.finished(_fit, jobs, shared=data):
            found[number] = model
            del waiting[number]
            tick(partial(_at_work, waiting, executor))
    return [found[number] for number in range(len(fits))]


def _fit(data: StackData, job: tuple[Any, Array]) -> Any:
    return data.fit(*job)


def _at_work(waiting: dict[int, str], executor: Executor) -> str:
    """Candidates of the fits that are next, as many as run at once."""
    return ", ".join(dict.fromkeys(list(waiting.values())[: executor.n_workers]))
