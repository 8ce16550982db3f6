"""What `evaluate` returns: a dataclass that prints as a table, exports and plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unbag.charts import Chart, Series, calibration_chart, roc_chart
from unbag.evaluation.baseline import Baseline
from unbag.evaluation.calibration import Curve
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.printing import Printed, TextTable
from unbag.extras import import_extra

__all__ = ["AmountEvaluation", "Evaluation"]

Array = NDArray[Any]


class EstimateTable(Printed):
    """Estimates by name that print as a table and export."""

    estimates: dict[str, Estimate]
    n_bags: int
    n_instances: int
    confidence: float
    grouping: str = ""

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.estimates:
            raise KeyError(f"no metric {name!r}; there are {', '.join(self.estimates)}")
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    @property
    def headline(self) -> str:
        """How good it is beside the trivial baseline, in words."""
        raise NotImplementedError

    def _table(self) -> TextTable:
        title = f"From {self.n_bags} bags of {self.n_instances} instances, without labels"
        rows = [(name, f.headline, f.interval, f.note) for name, f in self.estimates.items()]
        columns = ("metric", "estimate", f"{100 * self.confidence:g} % interval", "note")
        after = " ".join(filter(None, (self.headline, self.grouping)))
        return TextTable(title, columns, rows, after=after)

    def to_frame(self) -> Any:
        """All estimates as a pandas DataFrame, one row per metric."""
        pd = import_extra("pandas", extra="pandas", purpose="A frame of metrics")
        names = ("value", "low", "high", "standard_error", "outside")
        rows = {m: [getattr(found, n) for n in names] for m, found in self.estimates.items()}
        columns = ["estimate", *names[1:]]
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        return frame.rename_axis("metric")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """All estimates as plain numbers, for JSON, each with its note."""
        return {name: found.to_dict() for name, found in self.estimates.items()}


@dataclass(frozen=True)
class Evaluation(EstimateTable):
    """How good a classifier is, as far as bags tell.

    Attributes
    ----------
    estimates : dict of Estimate
        By metric; by ``metric[output]`` for single classes and labels.
    confusion, confusion_low, confusion_high : array
        Share of instances by true (row) and predicted class (column): (2, 2), or
        (n_classes, n_classes), or (n_labels, 2, 2).
    roc, calibration : list of Curve
        One for a binary task, otherwise one per class or label.
    residuals : array of shape (n_bags,) or (n_bags, n_outputs)
        Mean score of each bag minus its proportion.
    task : str
    n_bags, n_instances : int
    confidence : float
    baseline : Baseline
        The error of always predicting the most frequent label.
    equivalent_labels : float
        Number of labelled instances that would tell the error as precisely.
    grouping : str
        Why the bags are taken for random groups; empty if that was not asked.
    names : sequence of str
        Names of classes or labels; empty if they are numbers.
    """

    estimates: dict[str, Estimate]
    confusion: Array
    confusion_low: Array
    confusion_high: Array
    roc: list[Curve]
    calibration: list[Curve]
    residuals: Array
    task: str
    n_bags: int
    n_instances: int
    confidence: float
    baseline: Baseline
    equivalent_labels: float = field(default=float("nan"))
    grouping: str = ""
    names: Sequence[str] = ()

    @property
    def headline(self) -> str:
        """The error beside the trivial baseline, and a sentence if the model is not better."""
        error = self["error"]
        return f"{self.baseline.beside(error)}. {self.baseline.verdict(error)}".rstrip()

    def plot_roc(self) -> Chart:
        """The ROC curve, or one per class or label, with its pointwise band."""
        return roc_chart(self._by_name(self.roc))

    def plot_calibration(self) -> Chart:
        """The share of positives against the mean score of each bin."""
        return calibration_chart(self._by_name(self.calibration))

    def plot_residuals(self) -> Chart:
        """The histogram of the bags' residuals."""
        counts, edges = np.histogram(self.residuals, bins="auto")
        bars = Series(edges.tolist(), counts.tolist(), kind="bars")
        return Chart("Residuals of bags", "mean score minus proportion", "bags", [bars])

    def _by_name(self, curves: Sequence[Curve]) -> dict[str, dict[str, Any]]:
        names = self.names or [f"class {number}" for number in range(len(curves))]
        return {name: vars(curve) for name, curve in zip(names, curves, strict=True)}


@dataclass(frozen=True)
class AmountEvaluation(EstimateTable):
    """How well amounts of single instances are predicted, as far as bags tell.

    Attributes
    ----------
    estimates : dict of Estimate
        "mse", the mean squared error; "r2", the share of the amounts' variance that is explained;
        "bias", the mean prediction minus the mean amount; "slope", that of averages on mean
        predictions, 1 if calibrated. For numbers of events also "deviance", the Poisson deviance
        per bag, about 1 if rates are right and bags have some five events or more, and
        "explained_deviance", its share that predictions explain.
    residuals : array of shape (n_bags,)
        Mean prediction of each bag minus its average.
    n_bags, n_instances : int
    confidence : float
    """

    estimates: dict[str, Estimate]
    residuals: Array
    n_bags: int
    n_instances: int
    confidence: float
    task: ClassVar[str] = "amount"

    @property
    def headline(self) -> str:
        """The squared error beside that of the mean, and a sentence if it is not better."""
        mse, r2 = self["mse"], self["r2"]
        if np.isnan(r2.value) or r2.value >= 1:
            return ""
        better = r2.low > 0
        words = "" if better else "These bags do not show that the model is better than the mean."
        trivial = mse.value / (1 - r2.value)
        return f"Squared error {mse.headline}; always the mean: {trivial:.4g}. {words}".rstrip()
