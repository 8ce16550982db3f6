"""What defines a run of the league: everything that its numbers depend on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

__all__ = ["Kind", "RunSpec"]

Kind = Literal["random", "clusters"]
"""Bags drawn at random, or cut from clusters of similar images."""


@dataclass(frozen=True)
class RunSpec:
    """One training.

    Attributes
    ----------
    dataset, data : str
        Name of the images, and fingerprint of their arrays.
    net, method : str
        Names in the registries.
    bags : {"random", "clusters"}
    bag_size, seed : int
        A seed fixes bags, held-out bags, first weights, batches and views. Methods with the same
        seed see the same bags and begin with the same weights.
    learning_rate : float
    epochs, start_epochs : int
        Passes over the images, and those of the contrastive start before them.
    images_per_batch, check_every : int
        Images in a batch, and epochs between two measurements.
    held_out : float
        Share of the bags that are not trained on.
    options : str
        The method's options as JSON with sorted keys.

    Examples
    --------
    >>> spec = RunSpec("cifar10", "0f", "wrn16_2", "dllp", "random", 32, 0, 0.03, 60)
    >>> RunSpec.from_json(spec.to_json()) == spec
    True
    """

    dataset: str
    data: str
    net: str
    method: str
    bags: Kind
    bag_size: int
    seed: int
    learning_rate: float
    epochs: int
    start_epochs: int = 0
    images_per_batch: int = 1024
    check_every: int = 2
    held_out: float = 0.1
    options: str = "{}"
    version: int = 1

    def to_json(self) -> str:
        """The spec as JSON with sorted keys."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """Read back what `to_json` wrote."""
        return cls(**json.loads(text))

    @property
    def cell(self) -> RunSpec:
        """What runs of one cell of a table share: all but learning rate, seed and data."""
        return replace(self, learning_rate=0.0, seed=0, data="")

    def make_method(self) -> Any:
        """The method with its options."""
        from unbag_paper.league.methods import METHODS  # rows are read without torch

        return METHODS[self.method](**json.loads(self.options))
