"""`Trial`, the settings of one training, and `TrialResult`, the trained model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn

from unbag.rules import DebiasedSquare, Rule

__all__ = ["Stopped", "Trial", "TrialResult"]

Stopped = Literal["max_epochs", "patience", "interrupted"]


@dataclass(frozen=True)
class Trial:
    """One training: a rule, a learning rate and a seed.

    Everything random about a trial follows from `seed`, so it is the same alone or in a stack.

    Parameters
    ----------
    rule : Rule
    learning_rate : float
    seed : int

    Examples
    --------
    >>> Trial(seed=3)
    Trial(rule=DebiasedSquare(debias='pairwise', beta=0.99), learning_rate=0.001, seed=3)
    """

    rule: Rule = field(default_factory=DebiasedSquare)
    learning_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}.")


@dataclass(frozen=True, eq=False)
class TrialResult:
    """A trained model and how it got there.

    Attributes
    ----------
    trial : Trial
    model : torch.nn.Module
        On the CPU, in evaluation mode; with early stopping, as it was at `best_epoch`.
    history : dict of str to array of shape (n_epochs,)
        The mean training loss ("loss") and every monitor, after each epoch.
    best_epoch : int
        Epoch, counted from 0, the weights are from.
    stopped : {"max_epochs", "patience", "interrupted"}
    stacked : bool
        Whether it was trained together with other trials.
    input_shape : tuple of int
        Shape of one instance.
    """

    trial: Trial
    model: nn.Module
    history: dict[str, NDArray[Any]]
    best_epoch: int
    stopped: Stopped
    stacked: bool
    input_shape: tuple[int, ...]

    @property
    def n_epochs(self) -> int:
        """Epochs that were run."""
        return len(self.history["loss"])

    def after(self, earlier: TrialResult) -> TrialResult:
        """The same, with the history of the training that it went on from before its own."""
        history = {
            name: np.concatenate([earlier.history[name], values])
            for name, values in self.history.items()
            if name in earlier.history
        }
        return replace(self, history=history, best_epoch=earlier.n_epochs + self.best_epoch)

    def last(self, name: str) -> float:
        """Value of a monitor at the epoch the weights are from."""
        return float(np.asarray(self.history[name])[self.best_epoch])
