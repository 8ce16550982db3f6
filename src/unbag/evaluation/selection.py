"""Scorers and cross-fitting for model selection with scikit-learn, from bags alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from unbag.arguments import check_choice
from unbag.arrays import Array
from unbag.bags import BagKFold, Bags, BagTarget, as_bags, bags_of, variance_of
from unbag.errors import BagDataError
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.evaluate import refuse_regressor, scores_of
from unbag.evaluation.random_groups import MACRO, METRICS, evaluate_bags
from unbag.evaluation.risk import estimate_risk
from unbag.parallel import Executor, SerialExecutor

Fold = tuple[Array, Array]  # rows to fit to, and rows held out
# Metrics of which less is better: scikit-learn maximises, so their scorers change sign.
LOSSES = {"error", "brier", "log_loss", "balanced_error", "calibration_error"}


def bag_scorer(metric: str = "error") -> Callable[..., float]:
    """Scorer for scikit-learn's searches, from held-out whole bags.

    Parameters
    ----------
    metric : str
        A metric of `unbag.evaluate`, such as "auc", or "auc[0]" for the first of several classes.
        Losses are negated, so that larger is better.

    Notes
    -----
    Pass a `BagTarget` and ``cv=BagKFold(...)`` to the search: bags then stay whole, and the scorer
    gets them with the noise of their proportions. Without bags it raises, rather than treat
    proportions as labels.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from unbag import BagRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3)); labels = X[:, 0] > 0
    >>> ids = np.repeat(np.arange(60), 10)
    >>> y = BagTarget(ids, labels.reshape(60, 10).mean(axis=1)[ids])
    >>> grid = {"penalties": [[0.1], [10.0]]}
    >>> search = GridSearchCV(
    ...     BagRidgeClassifier(), grid, cv=BagKFold(3), scoring=bag_scorer("auc")
    ... )
    >>> bool(search.fit(X, y).best_score_ > 0.8)
    True
    """
    name = metric.partition("[")[0]
    check_choice("metric", name, (*METRICS, *(f"macro_{average}" for average in MACRO)))

    def score(
        estimator: Any, X: Any, y: Any, *, bags: Any = None, noise_variance: Any = None
    ) -> float:
        ids = bags_of(y, bags)
        if ids is None:
            raise BagDataError(
                "bag_scorer needs the bags: pass a BagTarget as y, with cv=BagKFold(...)."
            )
        data = as_bags(None, y, bags=ids, noise_variance=noise_variance)
        value = _metric(scores_of(estimator, X), data, metric)
        return -value if name in LOSSES else value

    return score


def _metric(scores: Any, bags: Bags, metric: str) -> float:
    if metric in ("error", "brier"):
        loss: Literal["zero_one", "square"] = "zero_one" if metric == "error" else "square"
        return estimate_risk(scores, bags, loss=loss).value
    found = evaluate_bags(scores, bags).estimates
    if metric not in found:
        raise ValueError(f"metric must be one of {', '.join(found)} here, got {metric!r}.")
    return found[metric].value


def cross_fit_risk(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    bags: Any = None,
    noise_variance: Any = None,
    n_splits: int = 5,
    loss: Literal["zero_one", "square"] = "zero_one",
    confidence: float = 0.95,
    executor: Executor | None = None,
) -> Estimate:
    """Estimate the risk of an estimator by cross-fitting: each bag is scored by a fit without it.

    For too few bags to hold some out, since all bags are used for training and for the estimate.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned and fitted `n_splits` times.
    X, y, bags, noise_variance
        As for `fit`.
    n_splits : int
    loss : {"zero_one", "square"}
    confidence : float
    executor : Executor, optional
        Where the fits run, such as ``unbag.parallel.get_executor(ray="local")``; by default here.

    Notes
    -----
    It is the mean risk of fits to part of the bags, slightly above that of a fit to all.

    Examples
    --------
    >>> from unbag import BagRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)); labels = X[:, 0] > 0
    >>> ids = np.repeat(np.arange(40), 10)
    >>> y = labels.reshape(40, 10).mean(axis=1)[ids]
    >>> cross_fit_risk(BagRidgeClassifier(), X, y, bags=ids).value < 0.2
    True
    """
    target, data, folds, own = folds_of(estimator, X, y, bags, noise_variance, n_splits, least=2)
    [scores] = fitted_scores(estimator, X, target, folds, executor)
    return estimate_risk(scores, data, loss=loss, confidence=confidence, parts=own)


def cross_fit_scores(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    bags: Any = None,
    noise_variance: Any = None,
    n_splits: int = 5,
    executor: Executor | None = None,
) -> Array:
    """Probabilities of every instance, by a fit without its bag.

    The counterpart of ``cross_val_predict(..., method="predict_proba")``, which would treat each
    distinct proportion as a class.

    Parameters
    ----------
    estimator, X, y, bags, noise_variance, n_splits, executor
        As for `cross_fit_risk`.

    Returns
    -------
    array of shape (n_instances, n_classes) or (n_instances, n_labels)
        As by ``predict_proba``, in the order of `X`.
    """
    target, _, folds, _ = folds_of(estimator, X, y, bags, noise_variance, n_splits)
    return fitted_scores(estimator, X, target, folds, executor)[0]


def folds_of(
    estimator: Any, X: Any, y: Any, bags: Any, noise_variance: Any, n_splits: int, *, least: int = 1
) -> tuple[BagTarget, Bags, list[Fold], list[Array]]:
    """The target, its bags, the rows of each fold and the bags, `least` or more, that it judges."""
    refuse_regressor(estimator)
    ids = bags_of(y, bags)
    if ids is None:
        raise BagDataError("Cross-fitting needs the bags: pass `bags`, or a BagTarget as y.")
    target = BagTarget(ids, np.asarray(y), noise_variance=variance_of(y, noise_variance))
    folds, data = list(BagKFold(n_splits).split(X, target)), as_bags(None, target)
    own = [np.unique(data.bag_of_row[test]) for _, test in folds]
    if min(map(len, own)) < least:
        raise BagDataError(
            f"n_splits must leave at least two bags in each fold, got {n_splits} for "
            f"{data.n_bags} bags. Lower n_splits."
        )
    return target, data, folds, own


def fitted_scores(
    estimator: Any,
    X: Any,
    target: BagTarget,
    folds: Sequence[Fold],
    executor: Executor | None,
    n_fits: int = 1,
) -> Array:
    """Scores (n_fits, n_instances, ...); `n_fits` consecutive folds hold out the same instances."""
    parts = (executor or SerialExecutor()).map(_fit_fold, folds, shared=(estimator, X, target))
    scores = np.zeros((n_fits, len(target), *parts[0].shape[1:]))
    for number, ((_, test), part) in enumerate(zip(folds, parts, strict=True)):
        scores[number % n_fits, test] = part
    return scores


def _fit_fold(shared: tuple[Any, Any, BagTarget], fold: Fold) -> Array:
    """Scores of a fold's held-out instances by a fit to the others."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    (estimator, X, target), (train, test) = shared, fold
    try:
        fitted = clone(estimator).fit(_safe_indexing(X, train), target[train])
    except BagDataError as error:
        raise BagDataError(f"in the training bags of a fold: {error} Or use more folds.") from error
    return np.asarray(scores_of(fitted, _safe_indexing(X, test)))
