"""The error of always predicting the most frequent label: what a model has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbag.evaluation.estimate import Estimate

__all__ = ["Baseline", "trivial_baseline"]


@dataclass(frozen=True)
class Baseline:
    """What is always predicted, and how often that is wrong.

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
        """The error of a model with its interval, and this baseline.

        Examples
        --------
        >>> Baseline("no", 0.238).beside(Estimate(0.187, 0.132, 0.199, 0.02))
        "18.7 % error (95 % interval 13.2 to 19.9); always 'no': 23.8 %"
        """
        ends = f"{100 * error.low:.1f} to {100 * error.high:.1f}" if error.interval else "unknown"
        words = f"{100 * error.confidence:g} % interval {ends}"
        note = f", {error.note}" if error.note else ""
        return f"{error.headline_percent} error ({words}{note}); {self}"

    def verdict(self, error: Estimate) -> str:
        """Say so if a model with this error is not better; empty if it is."""
        if error.low >= self.error:
            return f"The model is not better than always predicting {self.prediction!r}."
        if not error.high < self.error:
            return f"These bags do not show that the model is better than {self}."
        return ""


def trivial_baseline(bags: Any, names: Sequence[str] = ()) -> Baseline:
    """The baseline on a `Bags`, or on the bags of a table; classes may have names.

    Examples
    --------
    >>> from unbag import Bags
    >>> bags = Bags.from_arrays(np.zeros((4, 1)), offsets=[0, 2, 4], counts=[0, 1])
    >>> trivial_baseline(bags)
    Baseline(prediction='no', error=0.25)
    """
    prior = np.atleast_1d(np.average(bags.proportions, axis=0, weights=bags.sizes))
    if bags.task == "multiclass":
        best = int(prior.argmax())
        return Baseline(str(names[best]) if len(names) else f"class {best}", float(1 - prior[best]))
    common = [("no", "yes")[int(share > 0.5)] for share in prior]
    name = common[0] if len(set(common)) == 1 else "the most frequent answer"
    return Baseline(name, float(np.minimum(prior, 1 - prior).mean()))
