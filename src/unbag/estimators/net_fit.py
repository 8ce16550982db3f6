"""Train the nets of estimators, and estimate their error from bags they have not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unbag.arguments import check_share
from unbag.bags import Bags
from unbag.bags.holdout import MIN_BAGS, fold_bags, hold_out_bags
from unbag.errors import TrainingError
from unbag.estimators.ridge import BagRidgeClassifier
from unbag.estimators.ridge_regressor import BagRidgeRegressor
from unbag.evaluation.amounts import evaluate_amounts
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.risk import estimate_risk
from unbag.models import AveragedNet, BlendedNet, ModelBuilder
from unbag.randomness import derive_seed
from unbag.training import Criterion, Monitor, Settings, Trial, TrialResult, held_out_risk, train
from unbag.training.scoring import scores_of

__all__ = ["NetFit", "blend_weight", "held_out_parts"]

Array = NDArray[Any]
# More folds cost more fits; with three, nets that lack a third of the bags are much worse.
N_FOLDS = 4
# Share of the epochs that nets go on for once the bags held out have joined. On digits (splits
# 1 and 2, seeds 0 to 4) half of them makes up for what was held out, a quarter for most of it.
EXTRA_EPOCHS = 0.5
# Weight of the nets beside the ridge where held-out bags cannot tell them apart. By the formula of
# `blend_weight` with true risks, the best is 1 on a draw of digits in bags of 50, and 0.4 and 0.8
# on one each of adult and magic in bags of 100 (4,000 rows).
UNDECIDED = 2 / 3


@dataclass(frozen=True)
class NetFit:
    """How nets are trained, blended with the ridge, and measured.

    Attributes
    ----------
    trial : Trial
        Of the first net; the others have seeds of their own.
    n_nets : int
    model : str or function
    settings : Settings
    share : float or None
        Share of the bags held out.
    blend : bool
        Whether the ridge joins the nets.
    refit : bool
        Whether the bags held out join in the end.
    """

    trial: Trial
    n_nets: int
    model: str | ModelBuilder
    settings: Settings
    share: float | None
    blend: bool
    refit: bool

    def fit(self, bags: Bags) -> tuple[TrialResult, Estimate | None]:
        """Train on some bags, measure on the others, and go on with all of them."""
        parts = held_out_parts(bags, share=self.share, seed=self.trial.seed, in_folds=self.refit)
        if not parts:
            return _averaged(self._train(self.n_nets, bags)), None
        rest = [bags.take(np.setdiff1d(np.arange(bags.n_bags), part)) for part in parts]
        # Every part is left out by at least one net; spare nets serve the estimate only.
        n_nets = max(self.n_nets, len(parts))
        results = self._train(n_nets, [rest[i % len(parts)] for i in range(n_nets)])
        nets = results[: self.n_nets]
        if len(results) < n_nets or any(r.stopped == "interrupted" for r in results):
            return _averaged(nets), None
        each = [results[i :: len(parts)] for i in range(len(parts))]
        weight, risk = self._measured(each, rest, parts, bags)
        if not self.refit:
            return self._joined(nets, weight, rest[0]), risk
        return self._joined(self._train_on_all(nets, bags, len(parts)), weight, bags), risk

    def _train_on_all(
        self, nets: Sequence[TrialResult], bags: Bags, n_parts: int
    ) -> list[TrialResult]:
        """Go on with nets that lacked a fifth of the bags; begin anew where each lacked others."""
        if n_parts > 1:
            return self._train(self.n_nets, bags)
        epochs = math.ceil(EXTRA_EPOCHS * self.settings.max_epochs)
        more = replace(self.settings, max_epochs=epochs)
        return self._train(self.n_nets, bags, settings=more, resume=nets)

    def fit_with_patience(self, bags: Bags, criterion: Criterion) -> tuple[TrialResult, Estimate]:
        """Choose the epoch by one half of the bags held out, measure on the other."""
        if not self.share:
            raise ValueError("patience needs held-out bags: set validation_share, such as 0.2.")
        half = self.share / 2
        split = hold_out_bags(
            bags.sizes, judge=half, choose=half, seed=self.trial.seed, name="validation_share"
        )
        kept, choosing = bags.take(split.training), bags.take(split.choosing)
        monitor = held_out_risk(choosing, criterion=criterion)
        results = self._train(self.n_nets, kept, monitors=[monitor])
        weight, _ = self._measured([results], [kept], [split.choosing], bags)
        result = self._joined(results, weight, kept)
        return result, _risk([_scores(result, bags, split.judging)], [split.judging], bags)

    def _train(
        self,
        n_nets: int,
        bags: Bags | Sequence[Bags],
        *,
        settings: Settings | None = None,
        monitors: Sequence[Monitor] = (),
        resume: Sequence[TrialResult] | None = None,
    ) -> list[TrialResult]:
        seeds = [derive_seed(self.trial.seed, "net", i) for i in range(1, n_nets)]
        trials = [self.trial, *(replace(self.trial, seed=seed) for seed in seeds)]
        settings = settings or self.settings
        results = train(
            trials, bags, model=self.model, settings=settings, monitors=monitors, resume=resume
        )
        for result in results:
            _check_finite(result)
        return results

    def _measured(
        self,
        results: Sequence[Sequence[TrialResult]],
        rest: Sequence[Bags],
        parts: Sequence[Array],
        bags: Bags,
    ) -> tuple[float, Estimate]:
        """Weight of the nets beside the ridge, and the risk of both together."""
        nets = [_scores(_averaged(own), bags, p) for own, p in zip(results, parts, strict=True)]
        if not self.blend:
            return 1.0, _risk(nets, parts, bags)
        ridges = [
            _scores(_blended(own[0], kept), bags, part)
            for own, kept, part in zip(results, rest, parts, strict=True)
        ]
        bonus = self._gain_of_averaging(results, parts, bags)
        held_out = bags.take(np.concatenate(parts))
        both = np.concatenate(nets), np.concatenate(ridges)
        weight = blend_weight(*both, held_out, bonus=bonus)
        pairs = zip(nets, ridges, strict=True)
        return weight, _risk([weight * f + (1 - weight) * g for f, g in pairs], parts, bags)

    def _gain_of_averaging(
        self, results: Sequence[Sequence[TrialResult]], parts: Sequence[Array], bags: Bags
    ) -> float:
        """How much lower the square risk of all nets is than that of those that judge one part.

        The risk of an average of m models is their mean risk less (1 - 1/m)/2 E(f - g)^2 over
        pairs of them.
        """
        m = len(results[0])
        if m < 2 or m == self.n_nets:
            return 0.0
        one, two = (_scores(result, bags, parts[0]) for result in results[0][:2])
        return (1 / m - 1 / self.n_nets) / 2 * _distance(one, two)

    def _joined(self, results: Sequence[TrialResult], weight: float, bags: Bags) -> TrialResult:
        result = _averaged(results)
        return _blended(result, bags, weight) if self.blend else result


def _check_finite(result: TrialResult) -> None:
    if not all(tensor.isfinite().all() for tensor in result.model.state_dict().values()):
        raise TrainingError(
            "Training ended with weights that are not finite. Try a smaller learning_rate than "
            f"{result.trial.learning_rate:g}, scale the features, or check that the net itself "
            "gives finite numbers."
        )


def _averaged(results: Sequence[TrialResult]) -> TrialResult:
    """One result whose net averages the logits of all; its history is that of the first."""
    if len(results) == 1:
        return results[0]
    return replace(results[0], model=AveragedNet(result.model for result in results).eval())


def _blended(result: TrialResult, bags: Bags, weight: float = 0.0) -> TrialResult:
    """The same net, blended with a ridge on these bags."""
    ridge = (BagRidgeRegressor() if bags.task == "amount" else BagRidgeClassifier()).fit_bags(bags)
    coefficients = torch.as_tensor(np.atleast_2d(ridge.coef_.T), dtype=torch.float32)
    linear = nn.Linear(*coefficients.shape[::-1])
    with torch.no_grad():
        linear.weight.copy_(coefficients)
        linear.bias.copy_(torch.as_tensor(ridge.intercept_))
    net = BlendedNet(result.model, linear, weight, task=bags.task)
    return replace(result, model=net.eval())


def held_out_parts(
    bags: Bags, *, share: float | None, seed: int, in_folds: bool = True
) -> list[Array]:
    """Positions of the bags that nets leave out: one part, or folds if that would be few bags."""
    if not share:
        return []
    check_share("validation_share", share)
    if bags.n_bags < MIN_BAGS:
        return []
    part = hold_out_bags(bags.sizes, judge=share, seed=seed, name="validation_share").judging
    if len(part) >= MIN_BAGS or not in_folds:
        return [part]
    return fold_bags(bags.n_bags, n_folds=N_FOLDS, seed=seed)


def blend_weight(nets: Array, ridge: Array, bags: Bags, *, bonus: float = 0.0) -> float:
    r"""Weight of the first of two models whose mixture has the least square risk.

    The risk of :math:`w f + (1 - w) g` is :math:`w R_f + (1 - w) R_g - w (1 - w) D` with
    :math:`D = E (f - g)^2`, which needs no labels. So the best weight is

    .. math:: w = \tfrac 1 2 + \frac{R_g - R_f}{2 D},

    cut to lie between 0 and 1. The difference :math:`\delta` of the risks is estimated from the
    bags, with a standard error :math:`s`. So this weight counts :math:`(1 - s^2 / \delta^2)_+`, and
    2/3 counts the rest: the nets that are measured saw fewer bags than the final ones.

    Parameters
    ----------
    nets, ridge : array of shape (n_instances,) or (n_instances, n_outputs)
        Scores of the instances of `bags`, bag by bag.
    bags : Bags
        Held out from both models.
    bonus : float
        What is known to be missing from :math:`R_g - R_f`.

    Examples
    --------
    >>> ids = np.repeat(np.arange(20), 5); labels = np.arange(100) % 3 == 0
    >>> y = labels.reshape(20, 5).mean(axis=1)[ids]
    >>> bags = Bags.from_arrays(np.zeros((100, 1)), bags=ids, y=y)
    >>> blend_weight(labels.astype(float), np.full(100, 1 / 3), bags) > 0.5
    True
    """
    distance = _distance(nets, ridge)
    terms = risk_terms(ridge, bags) - risk_terms(nets, bags) + bonus
    gain, error = terms.mean(), terms.std(ddof=1) / len(terms) ** 0.5
    if distance < 1e-12 or abs(gain) <= error:
        return UNDECIDED
    certain = 1 - (error / gain) ** 2
    best = np.clip(0.5 + gain / (2 * distance), 0, 1)
    return float(certain * best + (1 - certain) * UNDECIDED)


def _distance(one: Array, two: Array) -> float:
    """Mean square distance of two models' scores."""
    return float(np.square(one - two).reshape(len(one), -1).sum(axis=1).mean())


def risk_terms(scores: Array, bags: Bags) -> Array:
    """A term of each bag whose mean is the pairwise risk, but for what noise adds to all models."""
    starts = np.cumsum(bags.sizes) - bags.sizes
    sizes = bags.sizes.astype(float)[:, None]
    means = np.add.reduceat(scores.reshape(len(scores), -1), starts) / sizes
    residuals = means - bags.proportions.reshape(len(sizes), -1)
    center = (sizes * residuals).sum(axis=0) / sizes.sum()
    n = len(sizes)
    spread = sizes * np.square(residuals - center) * (n / (n - 1)) * (1 - 1 / sizes.sum())
    return (spread + np.square(center)).sum(axis=1)


def _scores(result: TrialResult, bags: Bags, part: Array) -> Array:
    """Scores of the instances of some bags, bag by bag."""
    return scores_of(result, bags.X[bags.rows_of(part)], task=bags.task)


def _risk(scores: Sequence[Array], parts: Sequence[Array], bags: Bags) -> Estimate:
    """Error of single predictions, or the MSE of amounts, with each part's own model."""
    each = np.zeros((len(bags.X), *scores[0].shape[1:]))
    each[bags.rows_of(np.concatenate(parts))] = np.concatenate(scores)
    ends = np.cumsum([len(part) for part in parts])
    positions = np.split(np.arange(ends[-1]), ends[:-1])
    held_out = bags.take(np.concatenate(parts))
    if bags.task == "amount":
        return evaluate_amounts(each, held_out)["mse"]
    return estimate_risk(each, held_out, parts=positions)
