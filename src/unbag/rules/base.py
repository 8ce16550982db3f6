"""What every learning rule is: a loss on a minibatch of bags, and the claims it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from torch import Tensor

from unbag.bags.batch import BagBatch, Task

__all__ = ["InstanceLoss", "Rule"]

InstanceLoss = Literal["square", "log", "zero_one", "majority"]


class Rule(ABC):
    """A loss on bags. Subclasses are frozen dataclasses, so a rule is a value to compare and hash.

    The class attributes are claims, and ``tests/rules/test_every_rule.py`` checks each of them.
    """

    name: ClassVar[str]
    """Name in the registry."""
    paper_name: ClassVar[str]
    """What the paper's tables call it, or "new"."""
    instance_loss: ClassVar[InstanceLoss]
    """What the rule becomes when every bag holds one instance."""
    use_when: ClassVar[str]
    """When to choose it, for the documentation's table of rules."""
    tasks: ClassVar[tuple[Task, ...]] = ("binary", "multiclass", "multilabel")
    """Tasks the mathematics allows."""
    differentiable: ClassVar[bool] = True
    """Whether gradients mean anything."""

    @classmethod
    def variants(cls) -> tuple[Rule, ...]:
        """Every form of the rule that the contract is run on."""
        return (cls(),)

    @property
    def semi_gradient(self) -> bool:
        """Whether a part of the loss is held constant, so that steps leave its own gradient."""
        return False

    @property
    def unbiased(self) -> bool:
        """Whether the loss estimates the mean instance loss without bias, for i.i.d. instances."""
        return False

    @property
    def unbiased_given_prior(self) -> bool:
        """Whether it does so where the batch carries the true prior."""
        return self.unbiased

    @property
    def lower_bound(self) -> float | None:
        """A number the loss never goes below without noise; None if there is none."""
        return 0.0

    @property
    def min_bags(self) -> int:
        """Fewest bags in a batch for which the loss is defined."""
        return 1

    @property
    def prior_share(self) -> float:
        """Share of the bags that only serve to estimate the prior."""
        return 0.0

    @abstractmethod
    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the loss; one number for each leading axis of `logits`."""

    def step(
        self, logits: Tensor, batch: BagBatch, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the loss and the state the next step needs; most rules have none."""
        return self(logits, batch), state

    def __call__(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Check the batch, then compute the loss.

        Parameters
        ----------
        logits : Tensor of shape (..., n_instances) or (..., n_instances, n_outputs)
            One logit, or one per output, for each instance; the instances of the first bag first.
        batch : BagBatch
            The bags these instances form.
        """
        self.check(batch)
        return self.loss(logits, batch)

    def check(self, batch: BagBatch) -> None:
        """Raise unless the rule is defined on this batch."""
        if batch.task not in self.tasks:
            raise ValueError(f"{self.name} has no {batch.task} form; it serves {self.tasks}.")
        if batch.n_bags_in_all < self.min_bags:
            raise ValueError(
                f"{self.name} needs at least {self.min_bags} bags in a batch, "
                f"got {batch.n_bags_in_all}. "
                "Raise `bags_per_batch`, or use 'proportion_square'."
            )
