"""How a net measures its own error during the fit: on bags it has not been trained on yet."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbag.arguments import check_share
from unbag.bags import Bags, split_bags
from unbag.errors import BagDataError, TrainingError
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.risk import estimate_risk
from unbag.models import ModelBuilder
from unbag.randomness import numpy_generator
from unbag.training import (
    Criterion,
    Monitor,
    Settings,
    Trial,
    TrialResult,
    held_out_risk,
    train,
)
from unbag.training.scoring import scores_of

__all__ = ["FitPlan", "train_and_measure", "train_with_patience"]

Array = NDArray[Any]
# Fewer bags than this tell a risk within a factor of two at best: then every bag is held out once.
MIN_ASIDE = 10
# More folds cost more fits; with three, nets that lack a third of the bags are much worse.
N_FOLDS = 4
# A batch of the default rule.
MIN_KEPT = 2
# A fold needs two bags, and a net more than a handful.
MIN_BAGS = 10
# Two bags to choose by and two to measure on: a risk needs a pair.
MIN_FOR_PATIENCE = 4
# Share of the epochs that a net goes on for once the bags set aside have joined. On digits (splits
# 1 and 2, seeds 0 to 4) half of them makes up for what was held out, a quarter for most of it.
EXTRA_EPOCHS = 0.5


@dataclass(frozen=True)
class FitPlan:
    """How to train: the architecture, the settings, and the share of bags to be set aside."""

    model: str | ModelBuilder
    settings: Settings
    share: float | None

    def train(self, trial: Trial, bags: Bags, monitors: Sequence[Monitor] = ()) -> TrialResult:
        """Train one net."""
        [result] = train([trial], bags, model=self.model, monitors=monitors, settings=self.settings)
        return _finite(result)


def _finite(result: TrialResult) -> TrialResult:
    """The same, unless its net is lost."""
    if all(tensor.isfinite().all() for tensor in result.model.state_dict().values()):
        return result
    raise TrainingError(
        "Training ended with weights that are not finite. Try a smaller learning_rate than "
        f"{result.trial.learning_rate:g}, scale the features, or see whether the net itself gives "
        "numbers that are not finite."
    )


def train_and_measure(
    trial: Trial, bags: Bags, plan: FitPlan
) -> tuple[TrialResult, Estimate | None]:
    """Train on some bags, measure on the others, and go on with all of them.

    What is measured is the net, or the nets, before the bags set aside have joined.
    """
    parts = held_out_parts(bags.n_bags, share=plan.share, seed=trial.seed)
    if not parts:
        return plan.train(trial, bags), None
    results: list[TrialResult] = []
    for part in parts:
        kept = bags.take(np.setdiff1d(np.arange(bags.n_bags), part))
        results.append(plan.train(trial, kept))
        if results[-1].stopped == "interrupted":
            return results[0], None
    risk = measured_risk(results, parts, bags)
    return _go_on(results[0], bags, plan.settings), risk


def train_with_patience(
    trial: Trial, bags: Bags, plan: FitPlan, criterion: Criterion
) -> tuple[TrialResult, Estimate]:
    """Choose the epoch by one half of the bags set aside, measure on the other."""
    if not plan.share:
        raise ValueError("patience needs held-out bags: set validation_share, such as 0.2.")
    kept, aside = split_bags(bags, share=plan.share, seed=trial.seed)
    if aside.n_bags < MIN_FOR_PATIENCE:
        raise BagDataError(
            f"patience needs at least {MIN_FOR_PATIENCE} held-out bags, got {aside.n_bags} of "
            f"{bags.n_bags}. Raise validation_share, or set patience=None."
        )
    choosing, measuring = split_bags(aside, share=0.5, seed=trial.seed)
    result = plan.train(trial, kept, [held_out_risk(choosing, criterion=criterion)])
    return result, measured_risk([result], [np.arange(measuring.n_bags)], measuring)


def held_out_parts(n_bags: int, *, share: float | None, seed: int) -> list[Array]:
    """Positions of the bags each fit leaves out: one part, four if bags are few, or none at all.

    Examples
    --------
    >>> [len(part) for part in held_out_parts(100, share=0.2, seed=0)]
    [20]
    >>> [len(part) for part in held_out_parts(23, share=0.2, seed=0)]
    [6, 6, 6, 5]
    """
    if not share:
        return []
    check_share("validation_share", share)
    if n_bags < MIN_BAGS:
        return []
    order = numpy_generator(seed, "aside").permutation(n_bags)
    n_aside = round(share * n_bags)
    if n_bags - n_aside < MIN_KEPT:
        raise ValueError(
            f"validation_share must leave at least {MIN_KEPT} bags to train on, got {share} of "
            f"{n_bags} bags."
        )
    if n_aside >= MIN_ASIDE:
        return [np.sort(order[:n_aside])]
    return [np.sort(fold) for fold in np.array_split(order, N_FOLDS)]


def measured_risk(results: Sequence[TrialResult], parts: Sequence[Array], bags: Bags) -> Estimate:
    """Error of single predictions, each part of the bags scored by the net that left it out."""
    scores = np.zeros((len(bags.X), *np.shape(bags.proportions)[1:]))
    for result, part in zip(results, parts, strict=True):
        rows = bags.rows_of(part)
        scores[rows] = scores_of(result, bags.X[rows], task=bags.task)
    ends = np.cumsum([len(part) for part in parts])
    own = np.split(np.arange(ends[-1]), ends[:-1])
    return estimate_risk(scores, bags.take(np.concatenate(parts)), parts=own)


def _go_on(result: TrialResult, bags: Bags, settings: Settings) -> TrialResult:
    """Train a net further, on bags that were held out before too."""
    settings = replace(settings, max_epochs=math.ceil(EXTRA_EPOCHS * settings.max_epochs))
    [later] = train(
        [result.trial], bags, model=lambda *_: copy.deepcopy(result.model), settings=settings
    )
    loss = np.concatenate([result.history["loss"], later.history["loss"]])
    return replace(_finite(later), history={"loss": loss}, best_epoch=len(loss) - 1)
