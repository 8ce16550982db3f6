"""How many trees: the risk on held-out bags after each round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.bags import Bags

__all__ = ["HeldOutTrees", "gathered"]

Array = NDArray[Any]


class HeldOutTrees:
    """Estimates the risk on held-out bags after each round, and stops growing by it.

    Parameters
    ----------
    bags : Bags, optional
        None measures nothing and stops nothing.
    probabilities : function
        Scores from LightGBM's raw ones.
    risk : function
        From scores and bags to the risk.
    """

    def __init__(
        self,
        bags: Bags | None,
        probabilities: Callable[[Array], Array],
        risk: Callable[[Array, Bags], float],
    ) -> None:
        self.bags = None if bags is None else gathered(bags)
        self.probabilities, self.risk, self.risks = probabilities, risk, list[float]()

    def arguments(self, lightgbm: Any, train_set: Any, patience: int) -> dict[str, Any]:
        """What `lightgbm.train` is to be given; nothing without held-out bags."""
        if self.bags is None:
            return {}
        held_out = train_set.create_valid(self.bags.X, np.zeros(self.bags.n_instances))
        stopping = lightgbm.early_stopping(patience, verbose=False)
        return {"valid_sets": [held_out], "feval": self._measure, "callbacks": [stopping]}

    def _measure(self, raw: Array, dataset: Any) -> tuple[str, float, bool]:
        assert self.bags is not None
        self.risks.append(self.risk(self.probabilities(raw), self.bags))
        return "held_out_risk", self.risks[-1], False


def gathered(data: Bags) -> Bags:
    """The same bags with their own instances, the first bag's first."""
    weights = None if data.weights is None else data.weights[data.rows]
    return replace(data, X=data.X[data.rows], rows=np.arange(data.n_instances), weights=weights)
