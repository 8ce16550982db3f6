"""Tasks: one label, exclusive classes, or several labels, inferred from proportions."""

from __future__ import annotations

import warnings
from typing import Any, get_args

import numpy as np

from unbag.arguments import check_choice
from unbag.arrays import Array
from unbag.bags.batch import Task
from unbag.bags.noise import rounding_grid
from unbag.bags.validation import are_whole_counts
from unbag.errors import BagDataError, BagDataWarning

# Rounding error of single precision and of divided counts.
EXACT = 1e-5
# Sums of class proportions further from one than this are not explained by rounding.
ALMOST = 0.05


def find_task(
    proportions: Array,
    sizes: Array,
    *,
    noise_variance: Array | None = None,
    task: Task | None = None,
) -> Task:
    """Check a task, or infer it: columns that sum to one are classes, other columns are labels.

    Rounded sums may deviate by half a unit of the last decimal per column. Noisy sums may deviate
    by two standard deviations on average, and their mean by four standard errors.
    """
    if task is not None:
        check_choice("task", task, get_args(Task))
        if task == "amount" and proportions.ndim == 1:
            return task
        if (task == "binary") != (proportions.ndim == 1):
            raise BagDataError(
                f"task must be 'binary' or 'amount' for one column, 'multiclass' or 'multilabel' "
                f"for several, got {task!r} for shape {proportions.shape}."
            )
    if proportions.ndim == 1:
        return "binary"
    sums = proportions.sum(axis=1)
    gap, allowed = _gap(sums, proportions, sizes, noise_variance)
    near = gap <= max(ALMOST, 1.5 * allowed)
    almost = near or (not are_whole_counts(proportions, sizes).all() and _one_on_average(sums))
    words = f"proportions of the {proportions.shape[1]} columns add up to {sums.min():.3g} "
    words += f"to {sums.max():.3g} in a bag"
    if task is None and almost and gap > allowed:
        words += (
            f", {'almost' if near else 'on average'} to one, but are taken for those of separate "
            "labels: pass task='multiclass' if they are of classes, task='multilabel' if not."
        )
        warnings.warn(words, BagDataWarning, stacklevel=3)
    if task == "multiclass" and not almost:
        words += ", not to one as the proportions of all classes do. Is a class missing?"
        warnings.warn(words, BagDataWarning, stacklevel=3)
    return task or ("multiclass" if gap <= allowed else "multilabel")


def refuse_amounts(task: Task | None, name: str) -> None:
    """Raise if amounts are passed to something for labels."""
    if task == "amount":
        raise BagDataError(
            f"{name} is for labels, got averages of amounts. Use BagRidgeRegressor, "
            "BagBoostingRegressor or BagRegressor to learn them, and `evaluate` to evaluate them."
        )


def refuse_ranges(bags: Any, name: str) -> None:
    """Raise if ranges of counts are passed to something that needs exact counts."""
    if bags.ranges is not None:
        raise BagDataError(
            f"{name} needs proportions, got ranges of them. BagLogisticClassifier and "
            "BagEMClassifier learn from ranges."
        )


def _one_on_average(sums: Array) -> bool:
    """Whether sums scatter around one, as sums of classes do under unstated noise."""
    spread = sums.std()
    return bool(0 < spread < 0.2 and abs(sums.mean() - 1) < 2 * spread / np.sqrt(len(sums)))


def _gap(
    sums: Array, proportions: Array, sizes: Array, noise_variance: Array | None
) -> tuple[float, float]:
    """Deviation of the sums from one, and the deviation allowed for classes."""
    n_bags, n_outputs = proportions.shape
    errors = sums - 1
    if noise_variance is not None:
        of_mean = np.sqrt(n_bags) * abs(errors.mean())
        gap = max(np.sqrt(np.square(errors).mean()) / 2, of_mean / 4)
        return float(gap), EXACT + float(np.sqrt(n_outputs * noise_variance.mean()))
    step, chance = rounding_grid(proportions, sizes)
    allowed = EXACT + n_outputs * (step if chance < 0.01 else 0) / 2
    return float(np.abs(errors).max()), allowed


def risk_scale(task: Task, n_outputs: int, *, hard: bool) -> float:
    """Factor for a sum of squares over outputs: labels are averaged, a wrong class counts once."""
    if task == "multilabel":
        return 1 / n_outputs
    # A wrong class differs from the right one in two coordinates of the one-hot label.
    return 0.5 if hard and task == "multiclass" else 1.0
