"""Intervals for natural groups: how far chances may depart from scores, and where that leads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from unbag.bags import Bags
from unbag.evaluation.natural_linear import BoundedModel

__all__ = ["metric_positions", "smooth_model", "smoothness_in_words"]

Array = NDArray[Any]
N_KNOTS = 21


def smoothness_in_words(smoothness: float) -> str:
    """What the intervals assume."""
    low, high = 0.1 * (1 - smoothness), 0.1 * (1 + smoothness)
    return (
        f"Intervals assume smoothness {smoothness:g}: of rows whose scores differ by 0.1 the "
        f"chances of a positive label differ by {low:.3g} to {high:.3g} on average, and from bag "
        f"to bag chances move by at most {smoothness / 10:.3g} more or less than scores say if the "
        "bags' mean scores differ by 0.1. What bags do beyond that has nothing to do with scores."
    )


def smooth_model(scores: Array, bags: Bags, smoothness: float, units: Any = None) -> BoundedModel:
    r"""Chances of rows, whose scores come bag by bag, up to a smooth departure from the scores.

    .. math:: P(y_{ij} = 1) = f_{ij} + g(f_{ij}) + c \, \bar f_i + u_i, \qquad
              |g(f) - g(f')| \le L |f - f'|, \quad |c| \le L

    where :math:`L` is the smoothness and :math:`g` is linear between 21 knots (D30).
    """
    bag = np.repeat(np.arange(bags.n_bags), bags.sizes)
    knots = np.linspace(scores.min(), scores.max() + 1e-9, N_KNOTS)
    parts = np.clip(scores[:, None] - knots[:-1], 0, np.diff(knots))
    means = np.add.reduceat(scores, bags.starts) / bags.sizes
    one = np.ones((len(scores), 1))
    bounded = smoothness * np.column_stack([parts, means[bag] - scores.mean()])
    counts = np.rint(bags.proportions * bags.sizes)
    return BoundedModel(
        counts / bags.sizes, bags.sizes, bag, one[:, 0], scores, one, bounded, one, units
    )


def metric_positions(
    scores: Array,
    bags: Bags,
    extremes: tuple[Array, Array],
    *,
    smoothness: float,
    units: Any,
    confidence: float,
) -> dict[str, Array]:
    """Where metrics lie between those of the least and the best suiting labels: value and ends.

    Since the number of positives is known, each metric is linear in one sum over the positives: of
    hard predictions, scores, their logits or their ranks (D24). NaN if the counts contradict the
    smoothness: no labels with these counts lie within the interval.
    """
    certain = np.clip(scores, 1e-15, 1 - 1e-15)
    sums = {
        "": scores > 0.5,
        "brier": scores,
        "log_loss": special.logit(certain),
        "auc": stats.rankdata(scores),
    }
    model = smooth_model(scores, bags, smoothness, units)
    found = {}
    for name, values in sums.items():
        weights = values / len(scores)
        worst, best = (weights @ labels for labels in extremes)
        ends = np.array(model.interval(weights, confidence))
        places = (ends - worst) / max(best - worst, 1e-12)
        slack = 1e-9 * np.abs(weights).sum()
        contradicted = ends[1] > best + slack or ends[2] < worst - slack
        found[name] = np.full(3, np.nan) if contradicted else np.clip(places, 0, 1)
    return found
