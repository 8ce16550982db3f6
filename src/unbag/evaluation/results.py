"""What `evaluate` returns: a dataclass that prints as a table, exports and plots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.evaluation.calibration import Curve
from unbag.evaluation.estimate import Estimate
from unbag.extras import import_extra

__all__ = ["Evaluation"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Evaluation:
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
    equivalent_labels : float
        Number of labelled instances that would tell the error as precisely.
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
    equivalent_labels: float = field(default=float("nan"))

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.estimates:
            raise KeyError(f"no metric {name!r}; there are {', '.join(self.estimates)}")
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __rich__(self) -> Any:
        from rich.table import Table

        title = f"From {self.n_bags} bags of {self.n_instances} instances, without labels"
        table = Table(title=title)
        table.add_column("metric")
        for column in ("estimate", f"{100 * self.confidence:g} % interval", "note"):
            table.add_column(column, justify="right" if column != "note" else "left")
        for name, found in self.estimates.items():
            table.add_row(name, found.headline, found.interval, found.note)
        return table

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        stream = StringIO()
        Console(file=stream, width=100, color_system=None).print(self.__rich__())
        return stream.getvalue()

    def to_frame(self) -> Any:
        """All estimates as a pandas DataFrame, one row per metric."""
        pd = import_extra("pandas", extra="pandas", purpose="A frame of metrics")
        rows = {
            name: {
                "estimate": found.value,
                "low": found.low,
                "high": found.high,
                "standard_error": found.standard_error,
                "outside": found.outside,
            }
            for name, found in self.estimates.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """All estimates as plain numbers, for JSON, each with its note."""
        return {name: found.to_dict() for name, found in self.estimates.items()}

    def plot_roc(self, ax: Any = None) -> Any:
        """Draw the ROC curve, or one per class or label, with its pointwise band."""
        ax = _axes(ax)
        for number, curve in enumerate(self.roc):
            _draw(ax, curve, "" if len(self.roc) == 1 else f"class {number}")
        ax.plot([0, 1], [0, 1], ":", color="0.6")
        ax.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC from bags")
        return ax

    def plot_calibration(self, ax: Any = None) -> Any:
        """Draw the share of positives against the mean score of each bin."""
        ax = _axes(ax)
        for number, curve in enumerate(self.calibration):
            low, high = curve.y - curve.low, curve.high - curve.y
            label = "" if len(self.calibration) == 1 else f"class {number}"
            bars = np.maximum([low, high], 0)
            ax.errorbar(curve.x, curve.y, bars, fmt="o-", capsize=2, label=label)
        ax.plot([0, 1], [0, 1], ":", color="0.6")
        ax.set(xlabel="mean score", ylabel="share of positives", title="Calibration from bags")
        return ax

    def plot_residuals(self, ax: Any = None) -> Any:
        """Draw the histogram of the bags' residuals."""
        ax = _axes(ax)
        ax.hist(self.residuals.reshape(self.n_bags, -1), bins="auto")
        ax.axvline(0, color="0.6", linestyle=":")
        ax.set(xlabel="mean score minus proportion", ylabel="bags", title="Residuals of bags")
        return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def _draw(ax: Any, curve: Curve, label: str) -> None:
    (line,) = ax.plot(curve.x, curve.y, marker=".", label=label)
    ax.fill_between(curve.x, curve.low, curve.high, alpha=0.2, color=line.get_color())
