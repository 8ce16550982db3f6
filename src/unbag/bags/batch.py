"""A minibatch of bags as rules see it. Only this module knows the layout of instances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

Task = Literal["binary", "multiclass", "multilabel", "amount"]
MANY_INSTANCES = 2**14


@dataclass(frozen=True)
class BagBatch:
    r"""The proportions and sizes of a minibatch of bags, in the order of their instances' logits.

    Logits come as ``(..., n_instances)`` for a binary task and ``(..., n_instances, n_outputs)``
    otherwise, bag by bag. Leading axes, such as a stack of trials, are kept.

    Parameters
    ----------
    proportions : Tensor or array of shape (..., n_bags) or (..., n_bags, n_outputs)
        Average label of each bag.
    sizes : int, or Tensor or array of shape (n_bags,)
        Instances in each bag. An integer means equal bags, which is faster.
    noise_variance : Tensor of shape (n_bags,) or that of `proportions`, optional
        Known variance of independent zero-mean noise in the proportions.
    prior : Tensor of shape (...) or (..., n_outputs), optional
        Marginal label proportion. None estimates it from this batch.
    task : {"binary", "multiclass", "multilabel", "amount"}
        Sigmoid of one output, softmax over outputs, one sigmoid per output, or one output as it is.

    Examples
    --------
    >>> batch = BagBatch(torch.tensor([0.5, 1.0]), torch.tensor([2, 1]))
    >>> batch.mean(torch.tensor([[0.0], [1.0], [3.0]]))
    tensor([[0.5000],
            [3.0000]])
    """

    proportions: Tensor
    sizes: int | Tensor
    noise_variance: Tensor | None = None
    prior: Tensor | None = None
    task: Task = "binary"

    def __post_init__(self) -> None:
        if not isinstance(self.proportions, Tensor):
            object.__setattr__(self, "proportions", torch.as_tensor(self.proportions))
        if not isinstance(self.sizes, (int, Tensor)):
            sizes = torch.as_tensor(self.sizes)
            object.__setattr__(self, "sizes", sizes if sizes.ndim else int(sizes))
        if self.task in ("multiclass", "multilabel") and self.proportions.ndim < 2:
            raise ValueError(
                f"proportions must have shape (..., n_bags, n_outputs) for a {self.task} task, got "
                f"{tuple(self.proportions.shape)}. Pass one column for each class or label."
            )

    @property
    def single(self) -> bool:
        """Whether there is one output, which has no axis of its own."""
        return self.task in ("binary", "amount")

    @property
    def n_bags(self) -> int:
        """Number of bags in the batch."""
        return self.targets.shape[-2]

    @property
    def n_bags_in_all(self) -> int:
        """Number of bags that `total` sums over, including those held by other workers."""
        return self.n_bags

    @cached_property
    def largest_size(self) -> int:
        """Size of the largest bag."""
        return self.sizes if isinstance(self.sizes, int) else int(self.sizes.max())

    @cached_property
    def n_instances(self) -> int:
        """Number of instances in the batch."""
        if isinstance(self.sizes, int):
            return self.n_bags * self.sizes
        return int(self.sizes.sum())

    @cached_property
    def targets(self) -> Tensor:
        """The proportions as floats with an output axis: (..., n_bags, n_outputs)."""
        shares = _at_least_single(self.proportions)
        return shares.unsqueeze(-1) if self.single else shares

    @cached_property
    def bag_sizes(self) -> Tensor:
        """The sizes as floats that broadcast against (..., n_bags, n_outputs)."""
        if isinstance(self.sizes, int):
            return self.targets.new_full((self.n_bags, 1), float(self.sizes))
        return self.sizes.to(self.targets).unsqueeze(-1)

    @cached_property
    def noise(self) -> Tensor:
        """The noise variance with an output axis; zeros when the proportions are exact."""
        if self.noise_variance is None:
            return torch.zeros_like(self.bag_sizes)
        variance = torch.as_tensor(self.noise_variance).to(self.targets)
        same_axes = not self.single and variance.ndim == self.targets.ndim
        return variance if same_axes else variance.unsqueeze(-1)

    @cached_property
    def label_prior(self) -> Tensor:
        """The prior with a bag axis of one: (..., 1, n_outputs)."""
        if self.prior is None:
            return self.total(self.bag_sizes * self.targets) / self.total(self.bag_sizes)
        prior = torch.as_tensor(self.prior).to(self.targets)
        return prior[..., None, None] if self.single else prior.unsqueeze(-2)

    @cached_property
    def bag_of_instance(self) -> Tensor:
        """Position of each instance's bag, shape (n_instances,)."""
        sizes = torch.as_tensor(self.sizes, device=self.targets.device).expand(self.n_bags)
        bags = torch.arange(self.n_bags, device=self.targets.device)
        return torch.repeat_interleave(bags, sizes, output_size=self.n_instances)

    def outputs(self, logits: Tensor) -> Tensor:
        """Check the shape of the logits and add an output axis."""
        if not isinstance(logits, Tensor):
            raise TypeError(
                f"logits must be a tensor, got {type(logits).__name__}. Pass "
                "torch.as_tensor(logits)."
            )
        logits = _at_least_single(logits)
        outputs = logits.unsqueeze(-1) if self.single else logits
        wanted = (self.n_instances, self.targets.shape[-1])
        if outputs.shape[-2:] != wanted:
            stacked = self.single and self.proportions.ndim > 1
            several = ' Proportions of several classes need task="multiclass".' if stacked else ""
            shape = ", ".join(["...", *map(str, wanted[: 1 if self.single else 2])])
            raise ValueError(
                f"logits must have shape ({shape}) for a {self.task} task with {self.n_bags} bags "
                f"and {self.n_instances} instances in all, got {tuple(logits.shape)}. "
                "Pass one logit per instance, bag by bag." + several
            )
        return outputs

    def scores(self, logits: Tensor) -> Tensor:
        """Turn logits into probabilities, or amounts, of shape (..., n_instances, n_outputs)."""
        return as_scores(self.outputs(logits), self.task)

    def residuals(self, logits: Tensor) -> Tensor:
        """Mean score minus proportion of each bag, shape (..., n_bags, n_outputs)."""
        return self.mean(self.scores(logits)) - self.targets

    def sum(self, values: Tensor) -> Tensor:
        """Sum per-instance values (..., n_instances, n) over each bag: (..., n_bags, n)."""
        if isinstance(self.sizes, int):
            return values.unflatten(-2, (self.n_bags, self.sizes)).sum(dim=-2)
        # Sequential sums of many numbers lose digits in single precision.
        dtype = torch.float64 if self.n_instances > MANY_INSTANCES else values.dtype
        sums = values.new_zeros(*values.shape[:-2], self.n_bags, values.shape[-1], dtype=dtype)
        return sums.index_add(-2, self.bag_of_instance, values.to(dtype)).to(values.dtype)

    def mean(self, values: Tensor) -> Tensor:
        """Average per-instance values (..., n_instances, n) over each bag: (..., n_bags, n)."""
        return self.sum(values) / self.bag_sizes.to(values.dtype)

    def log_mean_exp(self, values: Tensor) -> Tensor:
        """Logarithm of the bag means of ``exp(values)``, without overflow or underflow."""
        peak = self.largest(values.detach())
        return self.mean((values - self.spread(peak)).exp()).log() + peak

    def spread(self, values: Tensor) -> Tensor:
        """Repeat each bag's value for its instances: (..., n_bags, n) to (..., n_instances, n)."""
        if isinstance(self.sizes, int):
            return values.repeat_interleave(self.sizes, dim=-2)
        return values.index_select(-2, self.bag_of_instance)

    def total(self, values: Tensor) -> Tensor:
        """Sum per-bag values over the batch, keeping the bag axis."""
        return values.sum(dim=-2, keepdim=True)

    def average(self, values: Tensor) -> Tensor:
        """Average per-bag values over the bags and sum over outputs: shape (...)."""
        return self.total(values).div(self.n_bags_in_all).sum(dim=(-1, -2))

    def largest(self, values: Tensor) -> Tensor:
        """Largest per-instance value of each bag: (..., n_instances, n) to (..., n_bags, n)."""
        if isinstance(self.sizes, int):
            return values.unflatten(-2, (self.n_bags, self.sizes)).amax(dim=-2)
        lowest = values.new_full((*values.shape[:-2], self.n_bags, values.shape[-1]), -torch.inf)
        index = self.bag_of_instance.unsqueeze(-1).expand(values.shape)
        return lowest.scatter_reduce(-2, index, values, "amax")


def as_scores(outputs: Tensor, task: Task) -> Tensor:
    """Turn outputs of a net (last axis) into probabilities; amounts are the outputs themselves."""
    if task == "amount":
        return outputs
    return outputs.softmax(dim=-1) if task == "multiclass" else outputs.sigmoid()


def _at_least_single(values: Tensor) -> Tensor:
    """Convert integers and half precision to floats, so that sums over a bag are not rounded."""
    if not values.is_floating_point():
        return values.to(torch.get_default_dtype())
    return values.float() if values.element_size() < 4 else values
