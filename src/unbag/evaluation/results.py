"""Results of `evaluate`: tables with text, export and charts, beside a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unbag.arrays import Array
from unbag.charts import Chart, Series, calibration_chart, roc_chart
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.printing import Printed, TextTable, readable
from unbag.evaluation.score_metrics import Curve
from unbag.extras import import_extra


@dataclass(frozen=True)
class Baseline:
    """The majority class, and the error of always predicting it.

    Examples
    --------
    >>> print(Baseline("no", 0.238))
    always 'no': 23.8 %
    >>> Baseline("no", 0.238).verdict(Estimate(0.25, 0.24, 0.27, 0.01))
    "The model is not better than always predicting 'no'."
    >>> Baseline("no", 0.238).verdict(Estimate(0.16, 0.14, 0.18, 0.01))
    ''
    """

    prediction: str
    error: float

    def __str__(self) -> str:
        return f"always {self.prediction!r}: {100 * self.error:.1f} %"

    def beside(self, error: Estimate) -> str:
        """The error of a model with its interval, and this baseline."""
        if np.isnan(error.value):
            return f"The error is unknown ({error.note}); {self}"
        ends = f"{100 * error.low:.1f} to {100 * error.high:.1f}" if error.interval else "unknown"
        words = f"{100 * error.confidence:g} % interval {ends}"
        note = f", {error.note}" if error.note else ""
        return f"{error.headline_percent} error ({words}{note}); {self}"

    def verdict(self, error: Estimate) -> str:
        """A sentence if a model with this error is not better than the baseline; else empty."""
        if error.low >= self.error:
            return f"The model is not better than always predicting {self.prediction!r}."
        if not error.high < self.error:
            return "These bags do not show that the model is better."
        return ""


def trivial_baseline(bags: Any, names: Sequence[Any] | Array = ()) -> Baseline:
    """The baseline of a `Bags`, or of the bags of a table; classes may have names."""
    prior = np.atleast_1d(np.average(bags.proportions, axis=0, weights=bags.sizes))
    if bags.task == "multiclass":
        best = int(prior.argmax())
        return Baseline(str(names[best]) if len(names) else f"class {best}", float(1 - prior[best]))
    common = [("no", "yes")[int(share > 0.5)] for share in prior]
    name = common[0] if len(set(common)) == 1 else "the most frequent answer"
    return Baseline(name, float(np.minimum(prior, 1 - prior).mean()))


def named_curves(names: Sequence[Any], curves: Sequence[Curve]) -> dict[str, dict[str, Any]]:
    """Curves of classes or labels by name."""
    names = names or [f"class {number}" for number in range(len(curves))]
    return {name: vars(curve) for name, curve in zip(names, curves, strict=True)}


class EstimateTable(Printed):
    """Estimates by name, displayed as a table."""

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
        """Result beside the baseline, in words; empty if there is none."""
        return ""

    def _table(self) -> TextTable:
        title = f"From {self.n_bags} bags with {self.n_instances} instances, without labels"
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
    """Metrics of a classifier, estimated from bags.

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
        Error of always predicting the majority class.
    equivalent_labels : float
        Number of labelled instances that would estimate the error as precisely.
    grouping : str
        Why the bags are treated as random groups; empty if not tested.
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
    equivalent_labels: float = float("nan")
    grouping: str = ""
    names: Sequence[str] = ()

    @property
    def headline(self) -> str:
        """The error beside the baseline, and a sentence if the model is not better."""
        error = self["error"]
        return f"{self.baseline.beside(error)}. {self.baseline.verdict(error)}".rstrip()

    def plot_roc(self) -> Chart:
        """The ROC curve, or one per class or label, with its pointwise band."""
        return roc_chart(named_curves(self.names, self.roc))

    def plot_calibration(self) -> Chart:
        """The share of positives against the mean score of each bin."""
        return calibration_chart(named_curves(self.names, self.calibration))

    def plot_residuals(self) -> Chart:
        """The histogram of the bags' residuals."""
        counts, edges = np.histogram(self.residuals, bins="auto")
        bars = Series(edges.tolist(), counts.tolist(), kind="bars")
        return Chart("Residuals of bags", "mean score minus proportion", "bags", [bars])


@dataclass(frozen=True)
class AmountEvaluation(EstimateTable):
    """Metrics of predicted amounts, estimated from bags.

    Attributes
    ----------
    estimates : dict of Estimate
        "mse", the mean squared error; "r2", the explained share of the variance of amounts (for
        natural groups "group_mse" and "group_r2", those of averages of bags instead); "bias",
        the mean prediction minus the mean amount; "slope", that of averages on mean predictions, 1
        if calibrated. For numbers of events also "deviance", the Poisson deviance per bag, about 1
        if rates are right and bags have about five events or more, and "explained_deviance".
    residuals : array of shape (n_bags,)
        Mean prediction of each bag minus its average.
    n_bags, n_instances : int
    confidence : float
    grouping : str
        Why bags are treated as random or natural groups; empty if not tested.
    """

    estimates: dict[str, Estimate]
    residuals: Array
    n_bags: int
    n_instances: int
    confidence: float
    grouping: str = ""
    task: ClassVar[str] = "amount"

    @property
    def natural(self) -> bool:
        """Whether only averages are judged, because bags are natural groups."""
        return "group_mse" in self.estimates

    @property
    def headline(self) -> str:
        """The squared error beside that of the mean, and a sentence if it is not better."""
        mse, r2 = (self[("group_" if self.natural else "") + name] for name in ("mse", "r2"))
        if np.isnan(r2.value) or r2.value >= 1:
            return ""
        better = r2.low > 0
        words = "" if better else "These bags do not show that the model is better than the mean."
        if self.natural:
            words = f"{words} The error of single amounts is larger, and unknown.".lstrip()
        what = "Squared error of averages" if self.natural else "Squared error"
        trivial = readable(mse.value / (1 - r2.value))
        return f"{what}: {mse.headline}; always the mean: {trivial}. {words}".rstrip()
