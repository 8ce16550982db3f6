"""What `evaluate` returns for natural groups: bounds, and how far the features explain counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from unbag.charts import Chart, calibration_chart
from unbag.evaluation.bag_effects import BagEffects
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.printing import Printed, TextTable
from unbag.evaluation.results import Baseline, named_curves
from unbag.evaluation.score_metrics import Curve
from unbag.extras import import_extra

LEVEL = 0.05  # of the sentence on bag effects


@dataclass(frozen=True)
class Bounds:
    """Bounds of a metric that follow from the counts of bags.

    Attributes
    ----------
    low, high : float
        The metric of the true labels lies between them, whatever the grouping. NaN where the metric
        is not defined, as precision without a positive prediction.
    if_right : float
        Its expectation given the counts, if the scores are the probabilities of independent labels,
        up to an effect of each bag on the logits of all its instances. NaN for hard predictions.
    if_smooth, smooth_low, smooth_high : float
        Estimate and interval under the stated smoothness, within the bounds; NaN if none is stated
        or the counts contradict it.
    """

    low: float
    high: float
    if_right: float
    if_smooth: float = np.nan
    smooth_low: float = np.nan
    smooth_high: float = np.nan

    @property
    def interval(self) -> str:
        """The interval under the stated smoothness; empty if there is none."""
        if np.isnan(self.if_smooth):
            return ""
        return f"{_number(self.smooth_low)} to {_number(self.smooth_high)}"

    def __str__(self) -> str:
        right = "" if np.isnan(self.if_right) else f"; {_number(self.if_right)} if right"
        smooth = self.interval and f"; {self.interval} if smooth"
        return f"{_number(self.low)} to {_number(self.high)}{right}{smooth}"


@dataclass(frozen=True)
class NaturalEvaluation(Printed):
    """Quality of a classifier, from bags that are not random groups.

    Attributes
    ----------
    bounds : dict of Bounds
        By metric.
    explained_deviance : Estimate
        Share of the deviance of bag rates that the scores explain.
    effects : BagEffects, optional
        Deviation of the bags' own effects, and its test; None if the bags cannot show it, and for
        several classes or labels.
    calibration : list of Curve
        Observed (y) against expected rate (x) of groups of bags, for each class or label.
    grouping : str
        Why the bags are treated as natural groups.
    smoothness : float, optional
        What the intervals of the bounds assume; None if there are no intervals.
    n_bags, n_instances : int
    confidence : float
    baseline : Baseline
        The error of always predicting the most frequent label.
    names : list
        Of classes or labels; empty for two classes.
    """

    bounds: dict[str, Bounds]
    explained_deviance: Estimate
    effects: BagEffects | None
    calibration: list[Curve]
    grouping: str
    smoothness: float | None
    n_bags: int
    n_instances: int
    confidence: float
    baseline: Baseline
    names: list[Any] = field(default_factory=list)

    def __getitem__(self, name: str) -> Bounds:
        if name not in self.bounds:
            raise KeyError(f"no metric {name!r}; there are {', '.join(self.bounds)}")
        return self.bounds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.bounds)

    @property
    def headline(self) -> str:
        """Bounds of the error, beside the trivial baseline."""
        error, trivial = self["error"], self.baseline
        ends = {f"{100 * end:.1f}": None for end in (error.low, error.high)}  # may print alike
        words = f"{' to '.join(ends)} % error; {trivial}."
        if error.low >= trivial.error:
            return f"{words} The model is not better than always predicting {trivial.prediction!r}."
        if self.explained_deviance.low > 0:
            return words
        return (
            f"{words} These bags do not show that the scores predict better than a constant rate."
        )

    @property
    def verdict(self) -> str:
        """Result of the test of fit, in words."""
        explained = self.explained_deviance
        words = f"Scores explain {explained} of the deviance of bag rates."
        if np.isnan(explained.low):
            words = f"How much the scores explain of bag rates is unknown: {explained.reason}."
        if np.isnan(self["error"].if_right):
            return f"{words} Scores are not probabilities, so only the bounds are given."
        if len(self.calibration) > 1:
            return words
        if self.effects is None:
            return f"{words} These bags cannot show effects of their own."
        found = str(self.effects)
        words += f" {found[0].upper()}{found[1:]}: "
        if self.effects.p_value < LEVEL:
            return (
                f"{words}counts vary more than the probabilities imply. The right column then "
                "assumes effects that are the same for all instances of a bag."
            )
        return words + "counts vary as the probabilities imply, which does not prove them right."

    def _table(self) -> TextTable:
        title = (
            f"From {self.n_bags} natural groups with {self.n_instances} instances, without labels"
        )
        columns = ["metric", "always between", "if the probabilities are right"]
        after = f"{self.headline} {self.verdict}"
        if self.smoothness is not None:
            columns.append(f"{100 * self.confidence:g} % if smooth")
            after += f" {_in_words(self.smoothness)}"
        rows = []
        for name, found in self.bounds.items():
            always = "" if np.isnan(found.low) else f"{_number(found.low)} to {_number(found.high)}"
            smooth = found.interval or ("counts contradict it" if always else "")
            row = (name, always or "not defined", _number(found.if_right), smooth)
            rows.append(row[: len(columns)])
        return TextTable(title, columns, rows, self.grouping, after)

    def to_frame(self) -> Any:
        """All bounds as a pandas DataFrame, one row per metric."""
        pd = import_extra("pandas", extra="pandas", purpose="A frame of metrics")
        rows = {name: asdict(found) for name, found in self.bounds.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the curve as plain numbers and words, for JSON."""
        return {
            "grouping": self.grouping,
            "headline": self.headline,
            "smoothness": self.smoothness,
            "verdict": self.verdict,
            "bounds": {name: asdict(found) for name, found in self.bounds.items()},
            "explained_deviance": self.explained_deviance.to_dict(),
            "bag_effects": None if self.effects is None else asdict(self.effects),
        }

    def plot_calibration(self) -> Chart:
        """The observed against the expected rate of groups of bags."""
        return calibration_chart(named_curves(self.names, self.calibration))


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def _in_words(smoothness: float) -> str:
    """What the intervals under a smoothness assume."""
    low, high = 0.1 * (1 - smoothness), 0.1 * (1 + smoothness)
    return (
        f"Intervals assume smoothness {smoothness:g}: if the scores of two rows differ by 0.1, "
        f"their chances of a positive label differ by {low:.3g} to {high:.3g} on average. If the "
        f"mean scores of two bags differ by 0.1, their chances differ by at most "
        f"{smoothness / 10:.3g} more or less. Other effects of bags are unrelated to the scores."
    )
