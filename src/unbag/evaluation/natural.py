"""Evaluation on natural groups: bounds, expectations under assumptions, a test of fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special, stats

from unbag.arguments import check_share, check_whole
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.reading import read_blocks
from unbag.errors import BagDataError
from unbag.evaluation.bag_effects import check_exact_counts, estimate_bag_effects
from unbag.evaluation.confusion import CELLS, DECISION_METRICS
from unbag.evaluation.estimate import Estimate, jackknife_estimate
from unbag.evaluation.natural_linear import check_reach, metric_positions
from unbag.evaluation.natural_results import Bounds, NaturalEvaluation
from unbag.evaluation.results import trivial_baseline
from unbag.evaluation.risk import checked_scores, decisions
from unbag.evaluation.score_metrics import Curve
from unbag.posterior import bag_posterior

BAGS_IN_GROUP = 4  # fewer do not show a standard deviation

DECLARED = "Bags were declared natural groups."


def evaluate_natural(
    scores: Any,
    bags: Bags,
    *,
    confidence: float = 0.95,
    n_bins: int = 10,
    blocks: Any = None,
    smoothness: float | None = None,
    grouping: str = DECLARED,
    names: Sequence[Any] = (),
) -> NaturalEvaluation:
    """Evaluate probabilities on bags that are not random groups; see `unbag.evaluate`.

    References
    ----------
    duncan1953alternative
    """
    check_exact_counts(bags, "Natural groups are evaluated")
    binary = bags.task == "binary"
    if smoothness is not None:
        check_reach("smoothness", smoothness)
        if not binary:
            raise BagDataError(
                f"smoothness must be None for {bags.n_outputs} classes or labels, got "
                f"{smoothness!r}. Evaluate one of them against the rest."
            )
    check_share("confidence", confidence)
    check_whole("n_bins", n_bins)
    values = checked_scores(scores, bags)
    units = read_blocks(blocks, bags.bag_of_row, bags.ids)
    hard = bool(((values == 0) | (values == 1)).all())
    posterior = None if hard else bag_posterior(values, bags)
    # Bags of one show no effects, and neither do bags without any positive or negative.
    shown = binary and not hard and (bags.sizes > 1).any() and bags.prior not in (0, 1)
    effects = estimate_bag_effects(values[:, 0], bags, confidence=confidence) if shown else None
    options: dict[str, Any] = {"smoothness": smoothness, "units": units, "confidence": confidence}
    return NaturalEvaluation(
        metric_bounds(*_single(0, values, bags, posterior), **options)
        if binary
        else bounds_by_output(values, bags, posterior, names),
        explained_deviance=explained_deviance(values, bags, units, confidence=confidence),
        effects=effects,
        calibration=[
            group_calibration(*_single(i, values, bags)[:2], n_bins, confidence)
            for i in range(bags.n_outputs)
        ],
        grouping=grouping,
        smoothness=smoothness,
        n_bags=bags.n_bags,
        n_instances=bags.n_instances,
        confidence=confidence,
        baseline=trivial_baseline(bags, names),
        names=list(names),
    )


def _single(
    output: int, scores: Array, bags: Bags, posterior: Array | None = None
) -> tuple[Array, Bags, Array | None]:
    """One class against the rest, or one label."""
    proportions = bags.proportions.reshape(bags.n_bags, -1)[:, output]
    own = replace(bags, proportions=proportions, task="binary")
    return scores[:, output], own, None if posterior is None else posterior[:, output]


def extreme_labels(scores: Array, bags: Bags) -> tuple[Array, Array]:
    """Labels with the known counts that suit the scores, given bag by bag, least and best (D24)."""
    own = np.repeat(np.arange(bags.n_bags), bags.sizes)
    order = np.lexsort((scores, own))
    rank = np.empty(len(scores), dtype=int)
    rank[order] = np.arange(len(scores)) - np.repeat(bags.starts, bags.sizes)
    counts = np.rint(bags.proportions * bags.sizes).astype(int)
    best = rank >= np.repeat(bags.sizes - counts, bags.sizes)
    return (rank < np.repeat(counts, bags.sizes)).astype(float), best.astype(float)


def label_metrics(scores: Array, labels: Array) -> dict[str, float]:
    """Metrics of scores on labels from 0 to 1, which stand for chances of independent labels."""
    hard = scores > 0.5
    fp, fn = float((hard * (1 - labels)).mean()), float((~hard * labels).mean())
    certain = np.clip(scores, 1e-15, 1 - 1e-15)
    found = {"error": fp + fn}
    with np.errstate(divide="ignore", invalid="ignore"):
        for name, metric in DECISION_METRICS.items():
            if name != "prior" and name not in CELLS:
                found[name] = float(metric(np.float64(fp), np.float64(fn), hard.mean()))
        found["auc"] = _auc(scores, labels)
    found["brier"] = float((scores**2 - 2 * scores * labels + labels).mean())
    log_losses = special.xlogy(labels, certain) + special.xlogy(1 - labels, 1 - certain)
    return found | {"log_loss": -float(log_losses.mean())}


def _auc(scores: Array, labels: Array) -> float:
    positives = labels.sum()
    pairs = stats.rankdata(scores) @ labels - positives * (positives + 1) / 2
    return float(pairs / (positives * (len(labels) - positives)))


def metric_bounds(
    scores: Array,
    bags: Bags,
    posterior: Array | None,
    smoothness: float | None = None,
    **options: Any,
) -> dict[str, Bounds]:
    """Of every metric; those of two extreme labelings, since metrics are linear between (D24)."""
    own = scores[bags.rows]
    extremes = extreme_labels(own, bags)
    chances = np.full(len(own), np.nan) if posterior is None else posterior[bags.rows]
    found = [label_metrics(own, labels) for labels in (*extremes, chances)]
    places = {"": np.full(3, np.nan)}
    if smoothness is not None:
        places = metric_positions(own, bags, extremes, smoothness=smoothness, **options)
    bounds = {}
    for name, worst in found[0].items():
        best, right = (values[name] for values in found[1:])
        low, high = sorted((worst, best))
        ends = np.clip(worst + places.get(name, places[""]) * (best - worst), low, high).tolist()
        bounds[name] = Bounds(low, high, right, ends[0], *sorted(ends[1:]))  # D25
    return bounds


def bounds_by_output(
    scores: Array, bags: Bags, posterior: Array | None, names: Sequence[Any]
) -> dict[str, Bounds]:
    """Bounds of the error, and of the metrics of each class against the rest, or of each label."""
    hard, found, errors = decisions(scores, bags.task), {}, []
    for i, name in enumerate(names if len(names) else range(bags.n_outputs)):
        by_score = metric_bounds(*_single(i, scores, bags, posterior))
        by_decision = metric_bounds(*_single(i, hard, bags, posterior))
        errors.append(by_decision.pop("error"))
        for metric, bounds in by_decision.items():
            chosen = bounds if metric in DECISION_METRICS else by_score[metric]
            found[f"{metric}[{name}]"] = chosen
    if bags.task == "multiclass":
        error = _class_error(hard, bags, posterior)
    else:
        ends = ((e.low, e.high, e.if_right) for e in errors)
        error = Bounds(*np.mean(list(ends), axis=0).tolist())
    return {"error": error} | found


def _class_error(hard: Array, bags: Bags, posterior: Array | None) -> Bounds:
    """Bounds of the share of wrong classes, from the counts of both in each bag (D24)."""
    true, predicted = bags.proportions * bags.sizes[:, None], bags.mean(hard) * bags.sizes[:, None]
    most = np.minimum(true, predicted).sum()
    least = np.maximum(true + predicted - bags.sizes[:, None], 0).sum()
    right = np.nan if posterior is None else (hard * posterior)[bags.rows].sum()
    return Bounds(*(1 - np.array([most, least, right]) / bags.n_instances).tolist())


def explained_deviance(
    scores: Array, bags: Bags, units: Array | None = None, *, confidence: float = 0.95
) -> Estimate:
    r"""Share of the deviance of bag rates that mean scores explain, and a constant rate does not.

    .. math:: 1 - \frac{\sum_i k_i\, d(a_i, \bar f_i)}{\sum_i k_i\, d(a_i, \bar a)},
              \quad d(a, f) = \sum_c a_c \log \frac{a_c}{f_c}

    summed over classes, or over each label and its complement.
    Below zero, a constant is better. Nothing is assumed of the grouping but that bags, or blocks of
    them, whose numbers are `units`, are independent (D26).
    """
    units = np.arange(bags.n_bags) if units is None else units
    means, rates = (v.reshape(bags.n_bags, -1) for v in (bags.mean(scores), bags.proportions))
    if bags.task != "multiclass":
        means, rates = (np.hstack([v, 1 - v]) for v in (means, rates))
    most = special.xlogy(rates, rates).sum(axis=1)
    fit = (rates * np.log(np.clip(means, 1e-9, 1))).sum(axis=1)
    sizes = bags.sizes.astype(float)
    parts = np.column_stack([sizes * (most - fit), sizes * most, sizes, sizes[:, None] * rates])
    sums = np.stack([np.bincount(units, column) for column in parts.T], axis=1)
    return jackknife_estimate(_explained, sums, confidence=confidence, below_one=True)


def _explained(sums: Array) -> Any:
    fit, most, size, *counts = np.moveaxis(sums, -1, 0)
    rates = np.clip(np.array(counts) / size, 0, 1)
    constant = most - size * special.xlogy(rates, rates).sum(axis=0)
    return 1 - fit / np.where(constant > 1e-9 * size, constant, np.nan)


def group_calibration(scores: Array, bags: Bags, n_bins: int, confidence: float) -> Curve:
    """Observed against expected rate of groups of bags with about the same expected rate."""
    expected = bags.mean(scores)
    groups = np.array_split(
        np.argsort(expected, kind="stable"), max(1, min(n_bins, bags.n_bags // BAGS_IN_GROUP))
    )
    points = []
    for group in groups:
        sizes, n = bags.sizes[group], len(group)
        share = sizes / sizes.sum()
        gaps = bags.proportions[group] - expected[group]
        x, gap = share @ expected[group], share @ gaps
        error = np.sqrt(((share * (gaps - gap)) ** 2).sum() * n / max(n - 1, 1))
        reach = stats.t.ppf((1 + confidence) / 2, n - 1) * error if n > 1 else np.nan
        points.append((x, x + gap, *np.clip([x + gap - reach, x + gap + reach], 0, 1), x))
    return Curve(*np.array(points).T)
