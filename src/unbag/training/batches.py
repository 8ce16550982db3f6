"""Minibatches of a stack of trials: row numbers and proportions on the device."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbag.arrays import Array
from unbag.bags import BagBatch, Bags, Task, cut_batches, split_bags
from unbag.bags.tasks import refuse_ranges
from unbag.errors import BagDataError, BagDataWarning
from unbag.training.settings import Settings
from unbag.training.trial import Trial


@dataclass(frozen=True)
class Batch:
    """One minibatch of every trial in a stack.

    `rows` has shape (n_trials, n_instances), bag by bag, or (1, n_instances) if all trials share
    them; `proportions` and `noise_variance` start with axes (n_trials, n_bags).
    """

    rows: Tensor
    proportions: Tensor
    noise_variance: Tensor | None
    sizes: int | Tensor

    def bags(self, trials: slice, prior: Tensor, task: Task) -> BagBatch:
        """Batch for the rule of these trials."""
        noise = None if self.noise_variance is None else self.noise_variance[trials]
        return BagBatch(self.proportions[trials], self.sizes, noise, prior[trials], task)


@dataclass(frozen=True)
class TrialData:
    """Bags and prior of a trial, and its batches as positions of bags."""

    bags: Bags
    prior: Any
    batches: tuple[Array, ...]
    bags_per_batch: int
    seed: int | None

    def redrawn(self, epoch: int) -> TrialData:
        """The same bags in the batches of another epoch."""
        batches = cut_batches(
            self.bags.n_bags, bags_per_batch=self.bags_per_batch, seed=self.seed, epoch=epoch
        )
        return replace(self, batches=tuple(batches))

    @property
    def layout(self) -> tuple[Any, ...]:
        """Trials of one layout can be stacked: same sizes of bags and batches, and noise or not.

        Unequal bags share it only with trials that draw the same batches.
        """
        shape = (self.bags.noise_variance is None, *(len(batch) for batch in self.batches))
        if (size := self.bags.equal_size) is not None:
            return (size, *shape)
        return (self.seed, *shape, *self.bags.sizes.tolist())


def trial_data(trial: Trial, bags: Bags, settings: Settings) -> TrialData:
    """Estimate the prior, on separate bags if the rule requires it, and draw the batches."""
    refuse_ranges(bags, "A net")
    if bags.weights is not None:
        raise BagDataError(
            "weights are not for nets, which learn from plain averages. Use BagRidgeRegressor, "
            "BagPoissonRegressor or BagBoostingRegressor."
        )
    prior, wanted = bags.prior, settings.batch_of(bags)
    if trial.rule.prior_share:
        bags, apart = split_bags(bags, share=trial.rule.prior_share, seed=trial.seed)
        prior = apart.prior
    per_batch = min(wanted, bags.n_bags)
    if per_batch < trial.rule.min_bags:
        raise BagDataError(
            f"bags_per_batch must be at least {trial.rule.min_bags} for rule "
            f"{trial.rule.name!r}, got {per_batch}."
        )
    own = trial.seed if settings.batch_seed is None else settings.batch_seed
    seed = own if settings.shuffle else None
    batches = cut_batches(bags.n_bags, bags_per_batch=per_batch, seed=seed)
    return TrialData(bags, prior, tuple(batches), per_batch, seed)


def make_batch(parts: Sequence[tuple[Bags, Array]], device: torch.device) -> Batch:
    """Minibatch of each trial on the device, from its bags and positions of some of them."""

    def stacked(name: str) -> Tensor:
        values = np.stack([getattr(bags, name)[chosen] for bags, chosen in parts])
        return torch.tensor(values, dtype=torch.float32, device=device)

    rows = np.stack([bags.rows_of(chosen) for bags, chosen in parts])
    if (rows == rows[0]).all():
        rows = rows[:1]
    first, chosen = parts[0]
    sizes = first.sizes[chosen]
    equal = bool((sizes == sizes[0]).all())
    return Batch(
        torch.tensor(rows, device=device),
        stacked("proportions"),
        None if first.noise_variance is None else stacked("noise_variance"),
        int(sizes[0]) if equal else torch.tensor(sizes, device=device),
    )


def all_bags(
    bags: Bags, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> BagBatch:
    """All bags as one batch."""
    noise = bags.noise_variance
    return BagBatch(
        torch.as_tensor(bags.proportions, dtype=dtype, device=device),
        bags.equal_size or torch.as_tensor(bags.sizes, device=device),
        None if noise is None else torch.as_tensor(noise, device=device),
        task=bags.task,
    )


def as_tensor(X: Any, device: torch.device) -> Tensor:
    """Instances on the device: pixels stay bytes, everything else becomes single precision."""
    if not isinstance(X, Tensor):
        X = np.asarray(X)
        known = X.dtype.isnative and (X.dtype.kind == "f" or X.dtype == np.uint8)
        if not (known and X.flags.writeable and min(X.strides, default=0) >= 0):
            X = X.astype(np.uint8 if X.dtype == np.uint8 else np.float32)
    tensor = torch.as_tensor(X)
    return tensor.to(device=device, dtype=torch.uint8 if are_pixels(tensor) else torch.float32)


def warn_of_single_precision(X: Any, *, stacklevel: int = 3) -> None:
    """Warn of features that vary by less than ten steps of single precision."""
    if isinstance(X, Tensor) or np.can_cast((X := np.asarray(X)).dtype, np.float32):
        return
    if X.dtype.kind == "O":  # a frame, which is encoded
        return
    X = X.reshape(len(X), -1).astype(float, copy=False)
    low, high, deviation = X.min(axis=0), X.max(axis=0), X.std(axis=0)
    largest = np.maximum(np.abs(low), np.abs(high))
    steps = np.spacing(largest.astype(np.float32))
    coarse = np.flatnonzero((low < high) & (deviation < 10 * steps))
    if len(coarse):
        first = coarse[0]
        warnings.warn(
            f"X: feature {first} is as large as {largest[first]:.3g} and varies by "
            f"{deviation[first]:.3g} only, and nets compute in single precision, which has steps "
            f"of {steps[first]:.3g} there ({len(coarse)} such features). Subtract its mean first: "
            "put a StandardScaler in front.",
            BagDataWarning,
            stacklevel=stacklevel,
        )


def are_pixels(X: Any) -> bool:
    """Whether instances are images of bytes; bytes in a table are ordinary numbers."""
    return X.ndim > 2 and str(X.dtype).endswith("uint8")


def as_inputs(x: Tensor) -> Tensor:
    """Inputs of a model: single precision, with bytes divided by 255."""
    return x.float().div_(255) if x.dtype == torch.uint8 else x.float()
