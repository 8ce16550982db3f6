"""`evaluate`: every metric of a classifier from held-out bags, without a single label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from unbag.arguments import check_choice
from unbag.bags import Bags, Task, as_bags
from unbag.errors import BagDataError
from unbag.evaluation import calibration
from unbag.evaluation.amounts import evaluate_amounts
from unbag.evaluation.baseline import trivial_baseline
from unbag.evaluation.confusion import (
    CELLS,
    DECISION_METRICS,
    decision_intervals,
    estimate_errors,
    no_interval,
)
from unbag.evaluation.curves import SCORE_METRICS, score_metrics
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.grouping import Grouping, explain_grouping, with_features
from unbag.evaluation.intervals import LAPLACE_KURTOSIS
from unbag.evaluation.multiclass import confusion_matrix, multiclass_log_loss
from unbag.evaluation.natural import evaluate_natural
from unbag.evaluation.natural_results import NaturalEvaluation
from unbag.evaluation.positives import fit_positives, score_table
from unbag.evaluation.residual_moments import noise_of
from unbag.evaluation.results import AmountEvaluation, Evaluation
from unbag.evaluation.risk import checked_scores, decisions, estimate_risk

__all__ = ["amounts_by", "evaluate", "evaluate_bags", "evaluate_grouped"]

Array = NDArray[Any]

# Without the number of the class or label that may follow, as in "auc[0]".
METRICS = (
    "error",
    "brier",
    *(name for name in DECISION_METRICS if name not in CELLS),
    *SCORE_METRICS,
    "calibration_error",
)
# Averages over classes or labels that people report.
MACRO = ("auc", "precision", "recall", "f1")


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
        Bags the classifier was not fitted on, or their instances, which may be anything that the
        classifier takes. None will do if the first argument is probabilities.
    y : array of shape (n_instances,) or (n_instances, n_outputs), optional
        Each instance's bag proportion, or a `BagTarget`; not needed with a `Bags`.
    bags : array of shape (n_instances,), optional
        Bag of each instance. None reads them from a `BagTarget`; other targets are then taken for
        labels of single instances.
    noise_variance : float, mapping from bag, or array of shape (n_instances,), optional
        Known variance of the noise in the proportions; `unbag.privacy_noise` gives it.
    noise_kurtosis : float
        Its excess kurtosis: 0 if normal, 3 if Laplace.
    confidence : float
    n_bins : int
        Bins of the calibration curve.
    grouping : {"random", "natural", "auto"}
        Whether bags are random groups of instances. "auto" tests it as `BagStackingClassifier`
        does, and says what it found.
    blocks : array of shape (n_instances,) or (n_bags,), or mapping from bag, optional
        For natural groups: what bags have in common, such as a day. Blocks, not bags, are then
        taken for independent.
    smoothness : float, optional
        For natural groups: how far chances may depart from scores. Of rows whose scores differ by d
        the chances of a positive label differ by (1 - smoothness) d to (1 + smoothness) d. Each
        metric then has an interval besides its bounds.
    task : {"binary", "multiclass", "multilabel", "amount"}, optional
        "amount" if predictions and averages are of real amounts, which is known of regressors.
    weights : array of shape (n_instances,), optional
        For amounts: weight of each instance in the average of its bag. Squared errors then count
        by the squares of the weights.

    Returns
    -------
    Evaluation, or NaturalEvaluation for natural groups, or AmountEvaluation for amounts

    Notes
    -----
    For random groups estimates are unbiased or consistent. They are not clipped: one outside its
    natural range is flagged. For natural groups these estimates are wrong and are not given.
    Instead there are bounds which always hold, expectations that hold if the probabilities are
    right, and a test of fit.

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
    task = "amount" if _is_regressor(model_or_scores) else task
    given = {"noise_variance": noise_variance, "weights": weights}
    data = bags_to_score(X, y, bags=bags, task=task, **given)
    if data.task == "amount" or task == "amount":
        return amounts_by(grouping, _amounts_of(model_or_scores, X), data, confidence)
    scores = scores_of(model_or_scores, X)
    return evaluate_grouped(
        scores,
        with_features(data, X) if grouping == "auto" else data,
        grouping=grouping,
        blocks=blocks,
        smoothness=smoothness,
        noise_kurtosis=noise_kurtosis,
        confidence=confidence,
        n_bins=n_bins,
        names=names_of(model_or_scores, data),
    )


def names_of(model: Any, bags: Bags) -> list[str]:
    """Names of classes, if the model has such: numbers are none."""
    classes = np.asarray(getattr(model, "classes_", []))
    named = bags.task == "multiclass" and classes.dtype.kind in "OUT"
    return [str(name) for name in classes] if named else []


def evaluate_grouped(
    scores: Any,
    bags: Bags,
    *,
    grouping: Grouping,
    blocks: Any = None,
    smoothness: float | None = None,
    noise_kurtosis: float = LAPLACE_KURTOSIS,
    names: Sequence[str] = (),
    tested: Bags | None = None,
    **options: Any,
) -> Evaluation | NaturalEvaluation:
    """Evaluate probabilities as the grouping allows; "auto" looks at the bags `tested`."""
    sentence = "Bags are said to be natural groups." if grouping == "natural" else ""
    if grouping == "auto":
        grouping, sentence = explain_grouping(bags if tested is None else tested)
    if grouping == "natural":
        options |= {"blocks": blocks, "smoothness": smoothness, "grouping": sentence}
        return evaluate_natural(scores, bags, **options)
    found = evaluate_bags(scores, bags, noise_kurtosis=noise_kurtosis, names=names, **options)
    return replace(found, grouping=sentence)


def _is_regressor(m: Any) -> bool:
    return hasattr(m, "predict") and not hasattr(m, "predict_proba") and is_regressor(m)


def _amounts_of(model: Any, X: Any) -> Any:
    """Predictions of a regressor, a function or an array."""
    predict = getattr(model, "predict", model)
    return predict(X.X if isinstance(X, Bags) else X) if callable(predict) else predict


def amounts_by(
    grouping: Grouping, predictions: Any, bags: Bags, confidence: float
) -> AmountEvaluation:
    """Evaluate amounts, which only random groups allow."""
    if grouping != "random":
        raise BagDataError(
            f"grouping must be 'random' for amounts, got {grouping!r}. What natural groups tell of "
            "single amounts has no bounds."
        )
    return evaluate_amounts(predictions, bags, confidence=confidence)


def bags_to_score(X: Any, y: Any, *, bags: Any, task: Task | None = None, **given: Any) -> Bags:
    """Bags for a model's scores: what `X` holds, such as strings or gaps, is the model's affair."""
    instances = X if isinstance(X, Bags) else None
    return as_bags(instances, y, bags=bags, task=task, **given)


def scores_of(model_or_scores: Any, X: Any) -> Any:
    """Probabilities by a classifier, a function or an array."""
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


def evaluate_bags(
    scores: Any,
    bags: Bags,
    *,
    noise_kurtosis: float = LAPLACE_KURTOSIS,
    confidence: float = 0.95,
    n_bins: int = 10,
    names: Sequence[Any] = (),
) -> Evaluation:
    """Evaluate probabilities, in the order of ``bags.X``, on bags; see `evaluate`.

    Metrics of single classes and labels are called by their `names`, or numbers if there are none.
    """
    values = checked_scores(scores, bags)
    options = {"confidence": confidence, "noise_kurtosis": noise_kurtosis}
    shared = _risks(values, bags, options)
    # A metric that is not defined, as AUC without a positive, is NaN and says so in the table.
    with np.errstate(divide="ignore", invalid="ignore"):
        outputs = [_one_output(v, bags, i, n_bins, options) for i, v in enumerate(values.T)]
    estimates = _merged(shared, [found for found, *_ in outputs], bags.task, names)
    cells = np.stack([c for _, c, *_ in outputs], axis=1)
    if bags.task == "multiclass":
        hard = decisions(values, bags.task)
        cells = np.stack(confusion_matrix(hard, bags, confidence=confidence))[:, None]
    value, low, high = cells if bags.task == "multilabel" else cells[:, 0]
    error = estimates["error"]
    return Evaluation(
        estimates,
        confusion=value,
        confusion_low=low,
        confusion_high=high,
        roc=[curve for *_, curve, _ in outputs],
        calibration=[curve for *_, curve in outputs],
        residuals=(bags.mean(values) - bags.proportions.reshape(bags.n_bags, -1)).squeeze(),
        task=bags.task,
        n_bags=bags.n_bags,
        n_instances=bags.n_instances,
        confidence=confidence,
        equivalent_labels=max(error.value * (1 - error.value), 0) / error.standard_error**2,
        baseline=trivial_baseline(bags, names),
        names=list(names),
    )


def _risks(values: Array, bags: Bags, options: dict[str, Any]) -> dict[str, Estimate]:
    """Error and Brier score, and the log loss of several classes."""
    found = {
        "error": estimate_risk(values, bags, loss="zero_one", **options),
        "brier": estimate_risk(values, bags, loss="square", **options),
    }
    if bags.task == "multiclass":
        found["log_loss"] = multiclass_log_loss(
            values, bags, noise_of(bags), confidence=options["confidence"]
        )
    return found


def _one_output(
    scores: Array, bags: Bags, output: int, n_bins: int, options: dict[str, Any]
) -> tuple[dict[str, Estimate], Array, calibration.Curve, calibration.Curve]:
    """Everything about one label, or one class against the rest."""
    proportions = bags.proportions.reshape(bags.n_bags, -1)[:, output]
    table = score_table(scores, bags, proportions, noise_of(bags))
    errors = estimate_errors(table, noise_kurtosis=options["noise_kurtosis"])
    found = decision_intervals(errors, confidence=options["confidence"])
    cells = np.array([_ends(found.pop(name)) for name in CELLS]).T.reshape(3, 2, 2)
    positives = fit_positives(table)
    reason = no_interval(errors).get("true_positives", "")
    found |= score_metrics(positives, reason=reason, **options)
    found["calibration_error"] = calibration.calibration_error(
        positives, confidence=options["confidence"], n_bins=n_bins
    )
    return (
        found,
        cells,
        calibration.roc_curve(positives, **options),
        calibration.calibration_curve(positives, n_bins=n_bins, **options),
    )


def _ends(found: Estimate) -> tuple[float, float, float]:
    return found.value, found.low, found.high


def _merged(
    shared: dict[str, Estimate],
    outputs: list[dict[str, Estimate]],
    task: str,
    names: Sequence[Any],
) -> dict[str, Estimate]:
    if task == "binary":
        return {**shared, **outputs[0]}
    single = {
        f"{metric}[{name}]": found
        for name, output in zip(names if len(names) else range(len(outputs)), outputs, strict=True)
        for metric, found in output.items()
        if not (task == "multiclass" and metric == "log_loss")
    }
    macro = {f"macro_{m}": macro_average([output[m] for output in outputs]) for m in MACRO}
    return {**shared, **macro, **single}


def macro_average(found: Sequence[Estimate]) -> Estimate:
    """Mean of the estimates of classes or labels.

    The standard error of a mean is at most the mean of standard errors, whatever the classes have
    in common; the interval reaches as far.

    Examples
    --------
    >>> print(macro_average([Estimate(0.8, 0.7, 0.9, 0.05), Estimate(0.6, 0.5, 0.7, 0.05)]))
    0.7000 (95 % interval 0.6000 to 0.8000)
    """
    value, low, high, error = (
        float(np.mean([getattr(f, name) for f in found]))
        for name in ("value", "low", "high", "standard_error")
    )
    reason = next((f.reason for f in found if f.reason), "")
    return replace(found[0], value=value, low=low, high=high, standard_error=error, reason=reason)
