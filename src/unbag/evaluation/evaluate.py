"""`evaluate`: metrics of a classifier from held-out bags, without labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
from sklearn.base import is_regressor

from unbag.arguments import check_choice
from unbag.bags import Bags, Task, as_bags
from unbag.bags.reading import in_class_order
from unbag.bags.tasks import refuse_ranges
from unbag.errors import BagDataError
from unbag.evaluation.amounts import evaluate_amounts, evaluate_averages
from unbag.evaluation.checks import Grouping, explain_grouping, with_features
from unbag.evaluation.intervals import LAPLACE_KURTOSIS
from unbag.evaluation.natural import DECLARED, evaluate_natural
from unbag.evaluation.natural_results import NaturalEvaluation
from unbag.evaluation.random_groups import evaluate_bags
from unbag.evaluation.results import AmountEvaluation, Evaluation


def evaluate(
    model_or_scores: Any,
    X: Any,
    y: Any = None,
    *,
    bags: Any = None,
    noise_variance: Any = None,
    noise_kurtosis: float = LAPLACE_KURTOSIS,
    confidence: float = 0.95,
    n_bins: int = 10,
    grouping: Grouping = "random",
    blocks: Any = None,
    smoothness: float | None = None,
    task: Task | None = None,
    weights: Any = None,
) -> Evaluation | NaturalEvaluation | AmountEvaluation:
    """Evaluate a classifier of single instances from bags, each metric with an interval.

    Parameters
    ----------
    model_or_scores : classifier, callable or array
        Something with `predict_proba`, a function from `X` to probabilities, or the probabilities
        themselves, one row per instance.
    X : Bags, array or data frame of shape (n_instances, ...), or None
        Bags on which the classifier was not fitted, or their instances in any form that the
        classifier accepts. None if the first argument is probabilities.
    y : array of shape (n_instances,) or (n_instances, n_outputs), optional
        Bag proportion of each instance, or a `BagTarget`; not needed with a `Bags`.
    bags : array of shape (n_instances,), optional
        Bag of each instance. None reads them from a `BagTarget`; other targets are then labels of
        single instances.
    noise_variance : float, mapping from bag, or array of shape (n_instances,), optional
        Known variance of the noise in the proportions; see `unbag.privacy_noise`.
    noise_kurtosis : float
        Excess kurtosis of the noise: 0 if normal, 3 if Laplace.
    confidence : float
    n_bins : int
        Bins of the calibration curve.
    grouping : {"random", "natural", "auto"}
        Whether bags are random groups of instances. "auto" tests it as `BagStackingClassifier`
        does, and states the result.
    blocks : array of shape (n_instances,) or (n_bags,), or mapping from bag, optional
        For natural groups: what bags have in common, such as a day. Blocks, not bags, are then
        assumed to be independent.
    smoothness : float, optional
        For natural groups: bound on the departure of probabilities from scores. Between rows whose
        scores differ by d, the probabilities of a positive label differ by (1 - smoothness) d to
        (1 + smoothness) d. Each metric then has an interval besides its bounds.
    task : {"binary", "multiclass", "multilabel", "amount"}, optional
        "amount" for predictions and averages of amounts; regressors imply it.
    weights : array of shape (n_instances,), optional
        For amounts: weight of each instance in the average of its bag. Squared errors are then
        weighted by the squares of the weights.

    Returns
    -------
    Evaluation, or NaturalEvaluation for natural groups, or AmountEvaluation for amounts

    Notes
    -----
    For random groups estimates are unbiased or consistent. They are not clipped: those outside the
    range of the metric are flagged. For natural groups these estimates would be biased. Instead
    there are bounds which always hold, expectations that hold if the probabilities are right, and a
    test of fit; for amounts, metrics of the averages of bags.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random(6000) < 0.5
    >>> scores = np.where(rng.random(6000) < 0.1, ~labels, labels) * 0.8 + 0.1
    >>> ids = np.repeat(np.arange(300), 20)
    >>> y = np.repeat(labels.reshape(300, 20).mean(axis=1), 20)
    >>> found = evaluate(scores, None, y, bags=ids)
    >>> found["error"].low < 0.1 < found["error"].high
    True
    """
    check_choice("grouping", grouping, get_args(Grouping))
    model = model_or_scores
    if predicts_amounts(model):
        task = "amount"
    given = {"noise_variance": noise_variance, "weights": weights}
    data = bags_to_score(model, X, y, bags=bags, task=task, **given)
    if data.task == "amount" or task == "amount":
        tested = with_features(data, X) if grouping == "auto" else None
        predictions = _amounts_of(model, X)
        return amounts_by(grouping, predictions, data, confidence=confidence, tested=tested)
    classes = np.asarray(getattr(model, "classes_", []))
    named = data.task == "multiclass" and classes.dtype.kind in "OUT"  # numbers are no names
    return evaluate_grouped(
        scores_of(model, X),
        with_features(data, X) if grouping == "auto" else data,
        grouping=grouping,
        blocks=blocks,
        smoothness=smoothness,
        noise_kurtosis=noise_kurtosis,
        confidence=confidence,
        n_bins=n_bins,
        names=[str(name) for name in classes] if named else [],
    )


def evaluate_grouped(
    scores: Any,
    bags: Bags,
    *,
    grouping: Grouping,
    blocks: Any = None,
    smoothness: float | None = None,
    noise_kurtosis: float = LAPLACE_KURTOSIS,
    tested: Bags | None = None,
    **options: Any,
) -> Evaluation | NaturalEvaluation:
    """Evaluate probabilities as the grouping allows; "auto" tests the bags `tested`."""
    if grouping == "random" and not (blocks is None and smoothness is None):
        raise BagDataError(
            "blocks and smoothness are for natural groups, got grouping='random'. Pass "
            "grouping='natural', or leave them out."
        )
    sentence = DECLARED if grouping == "natural" else ""
    if grouping == "auto":
        grouping, sentence = explain_grouping(bags if tested is None else tested)
    if grouping == "natural":
        options |= {"blocks": blocks, "smoothness": smoothness, "grouping": sentence}
        return evaluate_natural(scores, bags, **options)
    found = evaluate_bags(scores, bags, noise_kurtosis=noise_kurtosis, **options)
    return replace(found, grouping=sentence)


def _amounts_of(model: Any, X: Any) -> Any:
    """Predictions of a regressor, a function or an array."""
    predict = getattr(model, "predict", model)
    return predict(X.X if isinstance(X, Bags) else X) if callable(predict) else predict


def amounts_by(
    grouping: Grouping,
    predictions: Any,
    bags: Bags,
    *,
    confidence: float = 0.95,
    tested: Bags | None = None,
) -> AmountEvaluation:
    """Evaluate amounts as the grouping allows; "auto" tests the bags `tested`."""
    sentence = DECLARED if grouping == "natural" else ""
    if grouping == "auto":
        grouping, sentence = explain_grouping(bags if tested is None else tested)
    if grouping == "natural":
        return evaluate_averages(predictions, bags, confidence=confidence, grouping=sentence)
    found = evaluate_amounts(predictions, bags, confidence=confidence)
    return replace(found, grouping=sentence)


def predicts_amounts(model: Any) -> bool:
    """Whether a model is a regressor."""
    classifies = hasattr(model, "predict_proba") or not hasattr(model, "predict")
    return not classifies and is_regressor(model)


def refuse_regressor(model: Any) -> None:
    """Raise for a model of amounts where probabilities are needed."""
    if predicts_amounts(model):
        raise BagDataError(
            f"model must be a classifier here, got {type(model).__name__}. Regressors are for "
            "`evaluate`, and for cross_val_score(model, X, BagTarget(bags, y), cv=BagKFold(5))."
        )


def bags_to_score(
    model: Any, X: Any, y: Any, *, bags: Any, task: Task | None = None, **given: Any
) -> Bags:
    """Bags for a model's scores, without the instances, which only the model needs."""
    if task != "amount":
        refuse_regressor(model)
    instances = X if isinstance(X, Bags) else None
    y = in_class_order(y, getattr(model, "classes_", ()))
    data = as_bags(instances, y, bags=bags, task=task, **given)
    refuse_ranges(data, "An evaluation")
    return data


def scores_of(model_or_scores: Any, X: Any) -> Any:
    """Probabilities from a classifier, a function or an array."""
    if X is None and (hasattr(model_or_scores, "predict") or callable(model_or_scores)):
        raise BagDataError(
            "X must hold the instances that model_or_scores is to score, got None. Pass them, or "
            "pass probabilities instead of a model."
        )
    X = X.X if isinstance(X, Bags) else X
    if hasattr(model_or_scores, "predict_proba"):
        return model_or_scores.predict_proba(X)
    if callable(model_or_scores):
        return model_or_scores(X)
    if hasattr(model_or_scores, "predict"):
        raise BagDataError(
            "model_or_scores has no predict_proba. Pass an array of probabilities, or of hard "
            "predictions 0 and 1."
        )
    return model_or_scores
