"""Folds of whole bags, or of whole blocks of bags, and estimators that are fitted in them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unbag.arguments import check_whole
from unbag.bags import Bags, Task
from unbag.bags.reading import read_blocks
from unbag.estimators.base import BagEstimator
from unbag.randomness import numpy_generator

__all__ = ["BlockEstimator", "block_folds", "fold_numbers"]

Array = NDArray[Any]


class BlockEstimator(BagEstimator):
    """Base of the classifiers that fit in folds: `fit` takes the block of each bag too."""

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
        X : array of shape (n_instances, n_features)
            Missing values are left to the classifier.
        y : array of shape (n_instances,) or (n_instances, n_classes)
            Proportion of the instance's bag; without `bags`, the instance's own label.
        bags : array of shape (n_instances,), optional
            Bag of each instance. None means bags of one, which is supervised learning.
        noise_variance : float, mapping from bag, or array like `y`, optional
            Known variance of noise in the proportions.
        task : {"binary", "multiclass", "multilabel"}, optional
            None reads it off the proportions: several that add up to one are of classes.
        blocks : mapping from bag, or array of shape (n_instances,) or (n_bags,), optional
            Block of each bag, such as its day: folds keep blocks whole.
        """
        data = self._read(X, y, bags, noise_variance, task)
        return self._fit(data, read_blocks(blocks, data.bag_of_row, data.ids))

    def fit_bags(self, data: Bags, *, blocks: Array | None = None) -> Self:
        """Fit to a `Bags`, whose blocks are given one a bag."""
        self._adopt(data.task, data.n_outputs, data.X.shape[1])
        return self._fit(data, blocks)

    def _fit(self, data: Bags, blocks: Array | None = None) -> Self:
        raise NotImplementedError


def fold_numbers(n_bags: int, n_folds: int, *, seed: int) -> Array:
    """Fold of each bag, dealt at random; folds differ in size by at most one.

    Examples
    --------
    >>> np.bincount(fold_numbers(11, 3, seed=0))
    array([4, 4, 3])
    """
    folds = np.arange(n_bags) % min(n_folds, n_bags)
    return numpy_generator(seed, "folds").permuted(folds)


def block_folds(n_bags: int, cv: int, *, seed: int, blocks: Array | None) -> Array:
    """Deal bags, or blocks of bags, to folds."""
    check_whole("cv", cv, least=2)
    if blocks is None:
        return fold_numbers(n_bags, cv, seed=seed)
    _, codes = np.unique(blocks, return_inverse=True)
    return fold_numbers(codes.max() + 1, cv, seed=seed)[codes]
