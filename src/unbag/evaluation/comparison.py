"""Comparison of two classifiers on the same bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from scipy import stats

from unbag.arguments import check_choice, check_share
from unbag.bags.tasks import risk_scale
from unbag.evaluation.estimate import Estimate, student_estimate
from unbag.evaluation.evaluate import bags_to_score, scores_of
from unbag.evaluation.printing import TextTable
from unbag.evaluation.residual_moments import risk_change
from unbag.evaluation.risk import Loss, checked_scores, decisions


@dataclass(frozen=True)
class Comparison:
    """Difference of two risks (first minus second), with its two-sided p-value.

    `disagreement` is the mean square difference of the predictions: for hard ones, how often they
    differ.

    Examples
    --------
    >>> difference = Estimate(-0.012, -0.016, -0.008, 0.002, lowest=-1.0, n_bags=200)
    >>> print(Comparison(difference, 1e-6, 0.03, ("A", "B")))
    A is better than B by 1.2 ± 0.4 points (95 % interval, 200 bags, p = 1e-06)
    """

    difference: Estimate
    p_value: float
    disagreement: float
    names: tuple[str, str]

    def _repr_html_(self) -> str:
        found, title = self.difference, f"{self.names[0]} minus {self.names[1]}"
        interval = f"{100 * found.confidence:g} % interval"
        columns = ("difference of risks", interval, "p", "disagreement")
        numbers = f"{self.p_value:.2g}", f"{self.disagreement:.4f}"
        row = (f"{found.value:.4f}", found.interval, *numbers)
        return TextTable(title, columns, [row], after=str(self))._repr_html_()

    def __str__(self) -> str:
        found = self.difference
        if not self.disagreement:
            return f"{self.names[0]} and {self.names[1]} do not differ ({found.n_bags} bags)"
        first, second = self.names if found.value <= 0 else self.names[::-1]
        gap, half = 100 * abs(found.value), 50 * (found.high - found.low)
        verb = "is better than" if found.low > 0 or found.high < 0 else "may be better than"
        return (
            f"{first} {verb} {second} by {gap:.1f} ± {half:.1f} points "
            f"({100 * found.confidence:g} % interval, {found.n_bags} bags, p = {self.p_value:.2g})"
        )


def compare_models(
    first: Any,
    second: Any,
    X: Any,
    y: Any = None,
    *,
    bags: Any = None,
    noise_variance: Any = None,
    loss: Loss = "zero_one",
    confidence: float = 0.95,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    r"""Compare two classifiers, or their probabilities, on the same held-out bags.

    With predictions :math:`f, g`, their difference :math:`D = f - g` and middle
    :math:`c = (f + g)/2`,

    .. math:: E(f - y)^2 - E(g - y)^2 = 2 E[D (c - y)] .

    The right-hand side is linear in the labels, and small if the two agree.

    Parameters
    ----------
    first, second : classifier, callable or array
        As the first argument of `unbag.evaluate`.
    X, y, bags, noise_variance
        Held-out bags, as for `unbag.evaluate`.
    loss : {"zero_one", "square"}
        Error of hard predictions, or Brier score.
    confidence : float
        Confidence of the interval of the difference.
    names : pair of str
        Names of the two in the result.

    Notes
    -----
    The estimate is the difference of the two pairwise risks. Its variance is :math:`4 (V \sigma_D^2
    / n + E[D^2 (c - y)^2] / N)`, up to terms of higher order and those of unequal bags (D22) and
    known noise, with :math:`V` the variance of :math:`c - y`; the interval uses Student's t. It
    assumes no calibration: :math:`(c - y)^2` is linear in :math:`y` too, and its average is
    estimated from the bags if they show more of it than the scores.

    Examples
    --------
    >>> from unbag import Bags
    >>> bags = Bags.from_arrays(np.zeros((6, 1)), offsets=[0, 2, 4, 6], counts=[1, 1, 1])
    >>> good = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    >>> bad = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    >>> compare_models(good, bad, bags, names=("good", "bad")).difference.value < 0
    True
    """
    check_choice("loss", loss, get_args(Loss))
    check_share("confidence", confidence)
    data = bags_to_score(first, X, y, bags=bags, noise_variance=noise_variance)
    hard = loss == "zero_one"
    pair = [checked_scores(scores_of(model, X), data)[data.rows] for model in (first, second)]
    f, g = [decisions(scores, data.task) for scores in pair] if hard else pair
    gap, middle = f - g, (f + g) / 2
    value, variance = risk_change(gap, 2 * gap * middle, middle, data)
    scale = risk_scale(data.task, data.n_outputs, hard=hard)
    error, freedom = np.sqrt(variance), max(data.n_bags - 2, 1)
    highest = 2.0 if data.task == "multiclass" and not hard else 1.0
    about = {"lowest": -highest, "highest": highest, "n_bags": data.n_bags}
    difference = student_estimate(
        scale * value, scale * error, freedom, confidence=confidence, **about
    )
    p_value = 2 * stats.t.sf(abs(value) / max(error, 1e-300), freedom) if error > 0 else 1.0
    disagreement = float(scale * (gap**2).sum(axis=1).mean())
    return Comparison(difference, float(p_value), disagreement, names)
