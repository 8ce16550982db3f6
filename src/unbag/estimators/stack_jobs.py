"""Fits of a stack's candidates to parts of the bags, as jobs for processes or a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray
from sklearn.utils import get_tags

from unbag.bags import Bags
from unbag.estimators.candidates import fit_candidate
from unbag.parallel import Executor
from unbag.training.progress import progress_bar

__all__ = ["StackData", "fit_all"]

Array = NDArray[Any]
Fit = tuple[str, Any, Array | None]
"""Name and estimator of a candidate, and positions of its bags; None means all."""


@dataclass(frozen=True, eq=False)
class StackData:
    """What every fit needs; sent to a worker once.

    Attributes
    ----------
    bags : Bags
        With gaps, for candidates that take them.
    filled : Bags
        The same, filled and scaled, for the others.
    blocks : array of shape (n_bags,), optional
    """

    bags: Bags
    filled: Bags
    blocks: Array | None

    def fit(self, estimator: Any, positions: Array | None) -> Any:
        """Fit a candidate to the bags at these positions."""
        data = self.bags if get_tags(estimator).input_tags.allow_nan else self.filled
        if positions is None:
            return fit_candidate(estimator, data, self.blocks)
        blocks = None if self.blocks is None else self.blocks[positions]
        return fit_candidate(estimator, data.take(positions), blocks)


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


def _fit(data: StackData, job: tuple[Any, Array | None]) -> Any:
    return data.fit(*job)


def _at_work(waiting: dict[int, str], executor: Executor) -> str:
    """Candidates of the fits that are next, as many as run at once."""
    return ", ".join(dict.fromkeys(list(waiting.values())[: executor.n_workers]))
