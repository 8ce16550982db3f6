"""Folds of whole bags or blocks, and the base of estimators that use them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unbag.arguments import check_whole
from unbag.bags import Bags, Task
from unbag.bags.reading import read_blocks
from unbag.estimators.base import BagEstimator
from unbag.randomness import numpy_generator

Array = NDArray[Any]


class BlockEstimator(BagEstimator):
    """Base of the classifiers that are fitted in folds: `fit` also takes the block of each bag."""

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        bags: Any = None,
        noise_variance: Any = None,
        task: Task | None = None,
        blocks: Any = None,
    ) -> Self:
        """Fit to bags.

        Parameters
        ----------
        X, y, bags, noise_variance, task
            As for `BagRidgeClassifier.fit`; missing values are passed on to the classifier.
        blocks : mapping from bag, or array of shape (n_instances,) or (n_bags,), optional
            Block of each bag, such as its day: folds keep blocks whole.
        """
        data = self._read(X, y, bags, noise_variance, task)
        return self._fit(data, read_blocks(blocks, data.bag_of_row, data.ids))

    def fit_bags(self, data: Bags, *, blocks: Array | None = None) -> Self:
        """Fit to a `Bags`, with one block per bag."""
        self._adopt(data.task, data.n_outputs, data.X.shape[1])
        return self._fit(data, blocks)

    def _fit(self, data: Bags, blocks: Array | None = None) -> Self:
        raise NotImplementedError


def fold_numbers(n_bags: int, n_folds: int, *, seed: int) -> Array:
    """Random fold of each bag; folds differ in size by at most one."""
    folds = np.arange(n_bags) % min(n_folds, n_bags)
    return numpy_generator(seed, "folds").permuted(folds)


def block_folds(n_bags: int, cv: int, *, seed: int, blocks: Array | None) -> Array:
    """Fold of each bag; bags of one block are in the same fold."""
    check_whole("cv", cv, least=2)
    if blocks is None:
        return fold_numbers(n_bags, cv, seed=seed)
    _, codes = np.unique(blocks, return_inverse=True)
    return fold_numbers(codes.max() + 1, cv, seed=seed)[codes]
