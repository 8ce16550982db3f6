"""Which of two classifiers is better, and by how much, from the same bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from unbag.arguments import check_choice, check_share
from unbag.bags import Bags
from unbag.bags.tasks import risk_scale
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.evaluate import bags_to_score, scores_of
from unbag.evaluation.printing import TextTable
from unbag.evaluation.residual_covariance import residual_product
from unbag.evaluation.residual_moments import noise_of
from unbag.evaluation.risk import Loss, checked_scores, decisions

__all__ = ["Comparison", "compare_models", "compare_scores"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Comparison:
    """Difference of two risks.

    Attributes
    ----------
    difference : Estimate
        Risk of the first minus risk of the second; negative if the first is better.
    p_value : float
        Of no difference, two-sided.
    disagreement : float
        Mean square difference of the two predictions: for decisions, how often they differ.
    names : tuple of two str

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
    """Compare two classifiers, or their probabilities, on the same held-out bags.

    Parameters
    ----------
    first, second : classifier, callable or array
        As the first argument of `unbag.evaluate`.
    X, y, bags, noise_variance
        Held-out bags, as for `unbag.evaluate`.
    loss : {"zero_one", "square"}
        Error of hard predictions, or Brier score.
    confidence : float
        Of the interval of the difference.
    names : pair of str
        What the two are called in the answer.

    Notes
    -----
    See `compare_scores` for the method.

    Examples
    --------
    >>> bags = Bags.from_arrays(np.zeros((6, 1)), offsets=[0, 2, 4, 6], counts=[1, 1, 1])
    >>> good = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    >>> bad = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    >>> compare_models(good, bad, bags, names=("good", "bad")).difference.value < 0
    True
    """
    data = bags_to_score(X, y, bags=bags, noise_variance=noise_variance)
    pair = scores_of(first, X), scores_of(second, X)
    return compare_scores(*pair, data, loss=loss, confidence=confidence, names=names)


def compare_scores(
    first: Any,
    second: Any,
    bags: Bags,
    *,
    loss: Loss = "zero_one",
    confidence: float = 0.95,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    r"""Compare two arrays of probabilities on bags.

    With predictions :math:`f, g`, their difference :math:`D = f - g` and middle
    :math:`c = (f + g)/2`,

    .. math:: E(f - y)^2 - E(g - y)^2 = 2 E[D (c - y)] .

    The right-hand side is linear in the labels, and small where the two agree.

    Notes
    -----
    The estimate is the difference of the two pairwise risks. Its variance is
    :math:`4 (V \sigma_D^2 / n + E[D^2 (c - y)^2] / N)` but for terms of higher order, with
    :math:`V` the variance of :math:`c - y`, and the variance of known noise; the interval uses
    Student's law. It assumes no calibration: :math:`(c - y)^2` is linear in :math:`y` too, and its
    average is taken from the bags where they show more of it than the scores.

    Examples
    --------
    >>> bags = Bags.from_arrays(np.zeros((6, 1)), offsets=[0, 2, 4, 6], counts=[1, 1, 1])
    >>> good = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    >>> bad = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    >>> compare_scores(good, bad, bags).difference.value < 0
    True
    """
    check_choice("loss", loss, get_args(Loss))
    check_share("confidence", confidence)
    hard = loss == "zero_one"
    pair = [checked_scores(scores, bags) for scores in (first, second)]
    f, g = [decisions(p, bags.task) for p in pair] if hard else pair
    scale = risk_scale(bags.task, bags.n_outputs, hard=hard)
    highest = 2.0 if bags.task == "multiclass" and not hard else 1.0
    value, error = _difference(f, g, bags)
    freedom = max(bags.n_bags - 2, 1)
    half = stats.t.ppf((1 + confidence) / 2, freedom) * error * scale
    p_value = 2 * stats.t.sf(abs(value) / max(error, 1e-300), freedom) if error > 0 else 1.0
    difference = Estimate(
        scale * value,
        scale * value - half,
        scale * value + half,
        scale * error,
        lowest=-highest,
        highest=highest,
        n_bags=bags.n_bags,
        confidence=confidence,
    )
    disagreement = float(scale * ((f - g)[bags.rows] ** 2).sum(axis=1).mean())
    return Comparison(difference, float(p_value), disagreement, names)


def _difference(f: Array, g: Array, bags: Bags) -> tuple[float, float]:
    """Twice E[D (c - y)], summed over outputs, and its standard error."""
    f, g = f[bags.rows], g[bags.rows]
    difference, middle = f - g, (f + g) / 2
    noise = noise_of(bags)
    value, paired = residual_product(difference, middle, bags, noise)
    square, slope = _square(difference, middle, bags.task)
    chance = np.clip(middle, 0, 1)
    square = square + (slope * chance).sum(axis=1).mean()
    # It is linear in y, so bags tell its average too where the middle is a bad guess.
    square += max(residual_product(slope, chance, bags, noise)[0], 0)
    return -2 * value, 2 * float(np.sqrt(paired + square / bags.n_instances))


def _square(difference: Array, middle: Array, task: str) -> tuple[float, Array]:
    """Average of an instance's squared product of D and c - y: a constant, and what y multiplies.

    D23. Of several classes exactly one is true, which makes the square of their sum linear in y.
    """
    if task == "multiclass":
        level = (difference * middle).sum(axis=1, keepdims=True)
        return 0.0, (level - difference) ** 2
    constant = (difference**2 * middle**2).sum(axis=1).mean()
    return float(constant), difference**2 * (1 - 2 * middle)
