"""Exact minimisers over a finite class: a matrix of predictions, or callables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbag.errors import ConditionError
from unbag_paper.exact.count_rules import CountRule, bag_loss
from unbag_paper.exact.counted_bags import counted_bags

__all__ = ["FiniteMinimisers", "minimise_finite", "prediction_matrix", "symmetrise", "tied_minima"]

Array = NDArray[Any]
Integers = NDArray[np.int64]
Hypothesis = Callable[[ArrayLike], ArrayLike]

# Values this close are tied. Sums over a million bags in another order differ by about 1e-12.
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class FiniteMinimisers:
    """Every hypothesis with the least value.

    Parameters
    ----------
    value : float
        The least value; it can be infinite for the log loss, and then all hypotheses are tied.
    indices : array
        Rows of the class that attain it, in increasing order. In a symmetrised class of m rows,
        row ``m + i`` is one minus row i.
    values : array
        Value of every hypothesis.
    """

    value: float
    indices: Integers
    values: Array

    @property
    def best(self) -> int:
        """The tie rule: the first of the tied rows."""
        return int(self.indices[0])


def minimise_finite(
    hypotheses: ArrayLike | Sequence[Hypothesis],
    proportions: ArrayLike,
    *,
    rule: CountRule,
    bags: ArrayLike | None = None,
    sizes: ArrayLike | None = None,
    X: ArrayLike | None = None,
    symmetric: bool = False,
    combine_to: int | None = None,
) -> FiniteMinimisers:
    """Minimise a 0-1 rule exactly over finitely many hypotheses.

    Parameters
    ----------
    hypotheses : array_like of shape (hypotheses, instances), or sequence of callables
        0/1 predictions, or functions from `X` to them.
    proportions, bags, sizes, combine_to
        The bags, as in :func:`~unbag_paper.exact.counted_bags.counted_bags`.
    rule : CountRule
        Such as ``EPRM()`` or ``EasyLLP(prior=0.3)``.
    X : array_like, optional
        Instances, needed by callables only.
    symmetric : bool
        Add one minus each hypothesis to the class.

    Examples
    --------
    >>> from unbag_paper.exact import EPRM
    >>> found = minimise_finite([[0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0]], [0.5, 1.0],
    ...                         sizes=[2, 2], rule=EPRM())
    >>> found.value, found.indices.tolist(), found.best
    (0.0, [0, 1], 0)
    """
    predictions = prediction_matrix(hypotheses, X)
    found = counted_bags(proportions, bags=bags, sizes=sizes, combine_to=combine_to)
    if predictions.shape[1] != len(found.member):
        raise ConditionError(
            f"`hypotheses` predict {predictions.shape[1]} instances, the bags hold "
            f"{len(found.member)}."
        )
    predictions = symmetrise(predictions) if symmetric else predictions
    counts = found.counts(predictions)
    values = bag_loss(rule, counts, sizes=found.sizes, positives=found.positives)
    value, indices = tied_minima(values)
    return FiniteMinimisers(value, indices, values)


def prediction_matrix(
    hypotheses: ArrayLike | Sequence[Hypothesis], X: ArrayLike | None = None
) -> Integers:
    """Read a class as a matrix of 0/1 predictions, refusing an empty class and other values."""
    rows: ArrayLike = hypotheses  # type: ignore[assignment]
    if isinstance(hypotheses, Sequence) and len(hypotheses) and callable(hypotheses[0]):
        if X is None:
            raise ConditionError("A class of callables needs the instances, `X`.")
        rows = [np.asarray(hypothesis(X)) for hypothesis in hypotheses]  # type: ignore[operator]
    matrix = np.asarray(rows)
    if matrix.size == 0:
        raise ConditionError("`hypotheses` is empty: the class needs at least one hypothesis.")
    if matrix.ndim != 2:
        raise ConditionError(f"`hypotheses` must have two axes, got shape {matrix.shape}.")
    if not np.isin(matrix, (0, 1)).all():
        raise ConditionError("`hypotheses` must predict labels in {0, 1}.")
    return matrix.astype(np.int64)


def symmetrise(predictions: NDArray[np.integer]) -> Integers:
    """Add one minus each hypothesis below the hypotheses.

    Examples
    --------
    >>> symmetrise(np.array([[0, 1]])).tolist()
    [[0, 1], [1, 0]]
    """
    return np.concatenate([predictions, 1 - predictions]).astype(np.int64)


def tied_minima(values: Array, *, tolerance: float = TIE_TOLERANCE) -> tuple[float, Integers]:
    """Least value, and the positions of all values within a relative `tolerance` of it.

    Examples
    --------
    >>> tied_minima(np.array([2.0, 1.0, 1.0 + 1e-13]))
    (1.0, array([1, 2]))
    """
    least = float(values.min())
    ceiling = least + tolerance * max(1.0, abs(least)) if np.isfinite(least) else least
    return least, np.flatnonzero(values <= ceiling)
