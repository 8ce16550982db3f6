"""`Trial`, the specification of one training, and `TrialResult`, the trained model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from torch import nn

from unbag.arrays import Array
from unbag.rules import DebiasedSquare, Rule


@dataclass(frozen=True)
class Trial:
    """One training: a rule, a learning rate and a seed, which determines everything random."""

    rule: Rule = field(default_factory=DebiasedSquare)
    learning_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}.")


@dataclass(frozen=True, eq=False)
class TrialResult:
    """A trained model and its history.

    Attributes
    ----------
    trial : Trial
    model : torch.nn.Module
        On the CPU, in evaluation mode.
    history : dict of str to array of shape (n_epochs,)
        Mean training loss of each epoch, as "loss".
    interrupted : bool
        Whether Ctrl-C ended the training.
    stacked : bool
        Whether it was trained together with other trials.
    input_shape : tuple of int
        Shape of one instance.
    """

    trial: Trial
    model: nn.Module
    history: dict[str, Array]
    interrupted: bool
    stacked: bool
    input_shape: tuple[int, ...]

    @property
    def n_epochs(self) -> int:
        """Number of epochs."""
        return len(self.history["loss"])

    def after(self, earlier: TrialResult) -> TrialResult:
        """The same result with the history of an earlier training in front."""
        history = {
            name: np.concatenate([earlier.history[name], values])
            for name, values in self.history.items()
            if name in earlier.history
        }
        return replace(self, history=history)
