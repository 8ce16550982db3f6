"""The base class of learning rules: a loss on a minibatch of bags, and the claims it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from torch import Tensor

from unbag.bags.batch import BagBatch, Task

InstanceLoss = Literal["square", "log", "zero_one", "majority"]


class Rule(ABC):
    """A loss on bags. Subclasses are frozen dataclasses, so rules can be compared and hashed.

    The class attributes are claims. ``tests/rules/test_every_rule.py`` checks each of them.
    """

    name: ClassVar[str]
    """Name in the registry."""
    paper_name: ClassVar[str]
    """Name in the paper's tables, or "new"."""
    instance_loss: ClassVar[InstanceLoss]
    """The supervised loss that the rule equals when every bag holds one instance."""
    use_when: ClassVar[str]
    """When to choose the rule. Shown in the table of rules in the documentation."""
    tasks: ClassVar[tuple[Task, ...]] = ("binary", "multiclass", "multilabel")
    """Tasks for which the rule is defined."""

    @classmethod
    def variants(cls) -> tuple[Rule, ...]:
        """The variants of the rule that the contract tests run on."""
        return (cls(),)

    @property
    def semi_gradient(self) -> bool:
        """Whether part of the loss is treated as constant when the gradient is taken."""
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
        """Lower bound of the loss when proportions are exact; None if it is unbounded."""
        return 0.0

    @property
    def min_bags(self) -> int:
        """Smallest number of bags in a batch for which the loss is defined."""
        return 1

    @property
    def prior_share(self) -> float:
        """Fraction of the bags used only to estimate the prior."""
        return 0.0

    @abstractmethod
    def loss(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Compute the loss: one number for each index of the leading axes of `logits`."""

    def step(
        self, logits: Tensor, batch: BagBatch, state: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the loss and the state for the next step. Most rules have no state."""
        return self(logits, batch), state

    def __call__(self, logits: Tensor, batch: BagBatch) -> Tensor:
        """Check the batch, then compute the loss.

        Parameters
        ----------
        logits : Tensor of shape (..., n_instances) or (..., n_instances, n_outputs)
            One logit per instance, or one per instance and output, in order of the bags.
        batch : BagBatch
            The bags that hold these instances.
        """
        self.check(batch)
        return self.loss(logits, batch)

    def check(self, batch: BagBatch) -> None:
        """Raise unless the rule is defined on this batch."""
        if batch.task not in self.tasks:
            raise ValueError(f"{self.name} is defined for {self.tasks}, not for {batch.task}.")
        if batch.n_bags_in_all < self.min_bags:
            raise ValueError(
                f"{self.name} needs at least {self.min_bags} bags in a batch, "
                f"got {batch.n_bags_in_all}. "
                "Raise `bags_per_batch`, or use 'proportion_square'."
            )
