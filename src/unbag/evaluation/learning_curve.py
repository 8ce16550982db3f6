"""Learning curve: risk against the number of bags, extrapolated to more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from scipy import stats

from unbag.arguments import check_choice, check_share, check_some
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.charts import Chart, Series
from unbag.charts.chart import Kind
from unbag.errors import BagDataError
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.printing import Printed, TextTable
from unbag.evaluation.risk import Loss, estimate_risk
from unbag.evaluation.selection import fitted_scores, folds_of
from unbag.parallel import Executor
from unbag.randomness import numpy_generator

# Excess risks fall like the number of bags to these powers: in general, and for few parameters.
POWERS = (0.5, 1.0)
# A fall of less than this share of the risk is called small.
SMALL = 0.05


@dataclass(frozen=True)
class BagLearningCurve(Printed):
    """Risk against the number of training bags.

    Attributes
    ----------
    n_bags : list of int
        Numbers of bags of the fits.
    risks : list of Estimate
        Cross-fitted risk at each, on the same bags.
    projected_n_bags : list of int
    gains : list of Estimate
        Projected decrease of the last risk at each number.
    measure : str
        Error or Brier score.
    """

    n_bags: list[int]
    risks: list[Estimate]
    projected_n_bags: list[int]
    gains: list[Estimate]
    measure: str

    @property
    def projected(self) -> list[tuple[float, float, float]]:
        """Projected risk at each number, and the ends of its interval, given the last risk."""
        last = self.risks[-1].value
        ends = [(last - g.value, last - g.high, last - g.low) for g in self.gains]
        return [(max(a, 0.0), max(b, 0.0), max(c, 0.0)) for a, b, c in ends]

    @property
    def verdict(self) -> str:
        """Whether more bags would help, in words."""
        gain, more, last = self.gains[0], self.projected_n_bags[0], max(self.risks[-1].value, 0)
        low, value, high = (f"{100 * end:.1f}" for end in (gain.low, gain.value, gain.high))
        if gain.low > 0:
            small = gain.high < SMALL * last
            words = f"lower the {self.measure} by about {value} points ({low} to {high})"
            return f"{more} bags should {words}{', which is little' if small else ''}."
        if gain.high <= SMALL * last:
            return f"More bags would hardly help: {more} gain at most {high} points."
        return (
            f"These bags do not show whether more would help: {more} change the {self.measure} by "
            f"{100 * -gain.high:+.1f} to {100 * -gain.low:+.1f} points."
        )

    def _table(self) -> TextTable:
        rows = [
            (f"{n}", r.headline, r.interval, "measured")
            for n, r in zip(self.n_bags, self.risks, strict=True)
        ]
        for n, (value, low, high) in zip(self.projected_n_bags, self.projected, strict=True):
            rows.append((f"{n}", f"{value:.4f}", f"{low:.4f} to {high:.4f}", "projected"))
        interval = f"{100 * self.risks[0].confidence:g} % interval"
        columns = ("bags", self.measure, interval, "")
        return TextTable("Would more bags help?", columns, rows, after=self.verdict)

    def plot(self) -> Chart:
        """Measured risks with their intervals, and the projection with its own."""
        return learning_curve_chart(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, for JSON."""
        ends = ("value", "low", "high")
        return {
            "measure": self.measure,
            "verdict": self.verdict,
            "measured": [
                {"n_bags": n} | {end: getattr(r, end) for end in ends}
                for n, r in zip(self.n_bags, self.risks, strict=True)
            ],
            "projected": [
                {"n_bags": n} | dict(zip(ends, p, strict=True))
                for n, p in zip(self.projected_n_bags, self.projected, strict=True)
            ],
        }


def learning_curve_chart(found: dict[str, Any]) -> Chart:
    """Chart of the result of `BagLearningCurve.to_dict`."""
    measured, last = found["measured"], found["measured"][-1]
    start = last | {"low": last["value"], "high": last["value"]}
    points = _series(measured, "measured", "points")
    line = _series([start, *found["projected"]], "projected", "line")
    return Chart("Would more bags help?", "bags", found["measure"], [points, line], whole=True)


def _series(points: list[dict[str, float]], name: str, kind: Kind) -> Series:
    x, y, low, high = ([p[end] for p in points] for end in ("n_bags", "value", "low", "high"))
    return Series(x, y, low, high, name, kind)


def bag_learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    bags: Any = None,
    noise_variance: Any = None,
    shares: Sequence[float] = (0.25, 0.5, 1.0),
    factors: Sequence[float] = (2.0, 4.0),
    n_splits: int = 5,
    loss: Loss = "zero_one",
    confidence: float = 0.95,
    executor: Executor | None = None,
    random_state: int = 0,
) -> BagLearningCurve:
    r"""Estimate the risk at several numbers of bags, and extrapolate it to more.

    In each fold the estimator is fitted to nested subsets of the training bags; all fits are
    evaluated on the same held-out bags. The projection follows

    .. math:: R(n) = a + b\, n^{-\gamma}.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned and fitted ``n_splits * len(shares)`` times.
    X, y, bags, noise_variance
        As for `fit`. Bags are assumed to be random groups.
    shares : sequence of float
        Shares of the training bags of a fold.
    factors : sequence of float
        Factors of the number of bags for the projection.
    n_splits : int
    loss, executor
        As for `cross_fit_risk`.
    confidence : float
        Confidence of the intervals of risks and gains.
    random_state : int
        Seed of the subsets.

    Notes
    -----
    The gain is projected with :math:`\gamma = 1/2`, the general rate, and :math:`\gamma = 1`, that
    of models with few parameters. Its value is the mean of both and its interval covers both
    intervals, which come from the variation over folds by Student's t. Folds share training bags,
    so these are rather too short. A projection assumes further bags of the same kind and the same
    model.

    References
    ----------
    li2024optimistic

    Examples
    --------
    >>> from unbag import BagRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 20)); labels = X[:, 0] > 0
    >>> ids = np.repeat(np.arange(150), 20)
    >>> y = labels.reshape(150, 20).mean(axis=1)[ids]
    >>> curve = bag_learning_curve(BagRidgeClassifier(), X, y, bags=ids)
    >>> curve.n_bags, curve.projected_n_bags
    ([30, 60, 120], [240, 480])
    >>> curve.risks[0].value > curve.risks[-1].value
    True
    """
    check_choice("loss", loss, get_args(Loss))
    check_share("confidence", confidence)
    check_some("factors", factors)
    given, shares = shares, sorted(set(shares))
    if len(shares) < 2 or not shares[0] > 0 or shares[-1] > 1:
        raise BagDataError(
            f"shares must be at least two numbers above 0 and at most 1, got {list(given)}."
        )
    target, data, folds, own = folds_of(estimator, X, y, bags, noise_variance, n_splits, least=2)
    n_bags = [round(share * (1 - 1 / n_splits) * data.n_bags) for share in shares]
    if n_bags[0] < 2 or len(set(n_bags)) < len(n_bags):
        raise BagDataError(
            f"shares must give different numbers of at least two training bags, got {n_bags} for "
            f"{list(given)} of {data.n_bags} bags."
        )
    nested = [
        (part, test)
        for number, (train, test) in enumerate(folds)
        for part in _nested(train, data, shares, random_state + number)
    ]
    scores = fitted_scores(estimator, X, target, nested, executor, n_fits=len(shares))
    values = [
        [estimate_risk(s, data.take(fold), loss=loss, weights="size").value for s in scores]
        for fold in own
    ]
    return BagLearningCurve(
        n_bags,
        [estimate_risk(s, data, loss=loss, confidence=confidence, parts=own) for s in scores],
        projected_n_bags=[round(factor * n_bags[-1]) for factor in factors],
        gains=[projected_gain(np.array(values), n_bags, f, confidence=confidence) for f in factors],
        measure="error" if loss == "zero_one" else "Brier score",
    )


def _nested(train: Array, data: Bags, shares: Sequence[float], seed: int) -> list[Array]:
    """Rows of nested random subsets of the bags, of at least two bags."""
    of_row = data.bag_of_row[train]
    order = numpy_generator(seed, "learning curve").permutation(np.unique(of_row))
    kept = [order[: max(2, round(share * len(order)))] for share in shares]
    return [train[np.isin(of_row, some)] for some in kept]


def projected_gain(
    risks: Array, n_bags: Sequence[int], factor: float, *, confidence: float
) -> Estimate:
    """Decrease of risks (n_folds, n_sizes) at `factor` times the last number of bags."""
    numbers, found = np.asarray(n_bags, dtype=float), []
    reach = stats.t.ppf((1 + confidence) / 2, len(risks) - 1)
    for power in POWERS:
        x = numbers**-power - (numbers**-power).mean()
        # The slope by least squares, times what is left of n^-power.
        gains = risks @ x / (x @ x) * numbers[-1] ** -power * (1 - factor**-power)
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        found.append((gains.mean(), gains.mean() - reach * error, gains.mean() + reach * error))
    values, lows, highs = np.array(found).T
    low, high = float(lows.min()), float(highs.max())
    error = (high - low) / (2 * reach)
    return Estimate(float(values.mean()), low, high, error, -1.0, 1.0, confidence=confidence)
