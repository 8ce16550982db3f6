"""Train the networks of an estimator, and estimate their error from held-out bags."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unbag.arguments import check_share
from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.holdout import MIN_BAGS, fold_bags, hold_out_bags
from unbag.errors import TrainingError
from unbag.estimators.net_blend import ClosedForms, CrossScores, blend_weights
from unbag.evaluation.estimate import Estimate
from unbag.models import AveragedNet, BlendedNet, ModelBuilder
from unbag.randomness import derive_seed
from unbag.training import Settings, Trial, TrialResult, train
from unbag.training.loop import Training

# More folds cost more fits; with three, nets that lack a third of the bags are much worse.
N_FOLDS = 5
# Share of the epochs that nets go on for once the bags held out have joined. On digits (splits
# 1 and 2, seeds 0 to 4) half of them makes up for what was held out, a quarter for most of it.
EXTRA_EPOCHS = 0.5
# Training stops after this many epochs, if the best was a third of them ago.
MIN_EPOCHS, WORSE_FOR = 20, 3


@dataclass(frozen=True)
class NetFit:
    """Trains nets, blends them with ridges, and estimates their error.

    `trial` is that of the first net. `share` of the bags is held out; with `blend` nets are
    cross-fitted and averaged with closed-form models; with `refit` the held-out bags join in the
    end.
    """

    trial: Trial
    n_nets: int
    model: str | ModelBuilder
    settings: Settings
    share: float
    blend: bool
    refit: bool = True

    def fit(self, bags: Bags) -> tuple[TrialResult, Estimate | None]:
        """Train, and estimate the error if enough bags can be held out."""
        if self.share:
            check_share("validation_share", self.share)
        if not self.share or bags.n_bags < MIN_BAGS:
            return _averaged(self._train(self.n_nets, bags)), None
        if not self.refit:
            return self._fit_apart(bags)
        return self._fit_blend(bags) if self.blend else self._fit_and_continue(bags)

    def _fit_and_continue(self, bags: Bags) -> tuple[TrialResult, Estimate | None]:
        """Train on some bags, evaluate on the others, and continue with all."""
        parts = held_out_parts(bags, share=self.share, seed=self.trial.seed)
        rest = _without(bags, parts)
        # Every part is left out by at least one net; spare nets serve the estimate only.
        n_nets = max(self.n_nets, len(parts))
        results = self._train(n_nets, [rest[i % len(parts)] for i in range(n_nets)])
        nets = results[: self.n_nets]
        if _interrupted(results, n_nets):
            return _averaged(nets), None
        cross = CrossScores(bags, parts)
        risk = cross.estimate(cross.of_nets(_of_parts(results, len(parts))))
        if len(parts) > 1:  # each net lacked other bags
            return _averaged(self._train(self.n_nets, bags)), risk
        epochs = math.ceil(EXTRA_EPOCHS * self.settings.max_epochs)
        more = replace(self, settings=replace(self.settings, max_epochs=epochs))
        return _averaged(more._train(self.n_nets, bags, resume=nets)), risk

    def _fit_apart(self, bags: Bags) -> tuple[TrialResult, Estimate | None]:
        """Evaluate on bags that are never used for training."""
        held_out = hold_out_bags(
            bags.sizes, judge=self.share, seed=self.trial.seed, name="validation_share"
        )
        kept, cross = bags.take(held_out.training), CrossScores(bags, [held_out.judging])
        share = self.share if self.blend else 0.0
        result, _ = replace(self, refit=True, share=share).fit(kept)
        return result, cross.estimate(cross.of_nets([result]))

    def _fit_blend(self, bags: Bags) -> tuple[TrialResult, Estimate | None]:
        """Cross-fit nets and closed-form models; choose epoch and weights by cross-fitted risks.

        The final nets are those of the folds, averaged.
        """
        parts = fold_bags(bags.n_bags, n_folds=N_FOLDS, seed=self.trial.seed)
        cross, n_nets = CrossScores(bags, parts), max(self.n_nets, N_FOLDS)
        nets = self._best_nets(n_nets, _without(bags, parts), cross)
        if _interrupted(nets, n_nets):
            return _averaged(nets), None
        seed, everywhere = self.trial.seed, np.arange(bags.n_bags)
        closed = ClosedForms(bags, seed=seed)
        fitted = zip(*(closed.of(np.setdiff1d(everywhere, part)) for part in parts), strict=True)
        scores = [cross.of_models(models, nets[0]) for models in fitted]
        scores.append(cross.of_nets(_of_parts(nets, N_FOLDS)))
        weights = blend_weights(cross, scores, seed=seed)
        averaged = _averaged(nets)
        net = BlendedNet(averaged.model, closed.of(everywhere), weights, task=bags.task)
        mixed = np.tensordot(weights, np.stack(scores), axes=1)
        return replace(averaged, model=net.eval()), cross.estimate(mixed)

    def _best_nets(
        self, n_nets: int, rest: Sequence[Bags], cross: CrossScores
    ) -> list[TrialResult]:
        """Nets at the epoch with the least cross-fitted risk."""
        each = [rest[i % len(rest)] for i in range(n_nets)]
        training = Training(self._trials(n_nets), each, model=self.model, settings=self.settings)
        least, best, nets = np.inf, 0, []
        for epoch in epochs_to_try(self.settings.max_epochs):
            training.run(until=epoch)
            found = _finite(training.results())
            if _interrupted(found, n_nets):
                return found
            risk = cross.risk(cross.of_nets(_of_parts(found, N_FOLDS)))
            if risk < least:
                least, best, nets = risk, epoch, found
            if epoch >= max(MIN_EPOCHS, WORSE_FOR * best):
                break
        return nets

    def _trials(self, n_nets: int) -> list[Trial]:
        seeds = [derive_seed(self.trial.seed, "net", i) for i in range(1, n_nets)]
        return [self.trial, *(replace(self.trial, seed=seed) for seed in seeds)]

    def _train(
        self,
        n_nets: int,
        bags: Bags | Sequence[Bags],
        *,
        resume: Sequence[TrialResult] | None = None,
    ) -> list[TrialResult]:
        how: dict[str, Any] = {"model": self.model, "settings": self.settings}
        return _finite(train(self._trials(n_nets), bags, **how, resume=resume))


def _finite(results: list[TrialResult]) -> list[TrialResult]:
    """Return the results; raise if a weight is not finite."""
    for result in results:
        if not all(tensor.isfinite().all() for tensor in result.model.state_dict().values()):
            raise TrainingError(
                "Training ended with weights that are not finite. Try a smaller learning_rate than "
                f"{result.trial.learning_rate:g}, scale the features, or check that the net itself "
                "gives finite numbers."
            )
    return results


def epochs_to_try(max_epochs: int) -> list[int]:
    """Numbers of epochs, each about 1.5 times the previous one.

    Examples
    --------
    >>> epochs_to_try(20)
    [1, 2, 3, 4, 6, 9, 13, 20]
    """
    found = [max_epochs]
    while found[-1] > 1:
        found.append(min(found[-1] - 1, round(found[-1] / 1.5)))
    return found[::-1]


def _interrupted(results: Sequence[TrialResult], n_nets: int) -> bool:
    return len(results) < n_nets or any(r.interrupted for r in results)


def _of_parts(nets: Sequence[TrialResult], n_parts: int) -> list[TrialResult]:
    """The average of the nets that left out each part."""
    return [_averaged(nets[i::n_parts]) for i in range(n_parts)]


def _without(bags: Bags, parts: Sequence[Array]) -> list[Bags]:
    """All bags except those of each part."""
    return [bags.take(np.setdiff1d(np.arange(bags.n_bags), part)) for part in parts]


def _averaged(results: Sequence[TrialResult]) -> TrialResult:
    """One result whose net averages the logits of all, with the history of the first."""
    if len(results) == 1:
        return results[0]
    return replace(results[0], model=AveragedNet(result.model for result in results).eval())


def held_out_parts(bags: Bags, *, share: float, seed: int) -> list[Array]:
    """Positions of held-out bags: one part, or folds if the part would be small."""
    part = hold_out_bags(bags.sizes, judge=share, seed=seed, name="validation_share").judging
    return [part] if len(part) >= MIN_BAGS else fold_bags(bags.n_bags, n_folds=N_FOLDS, seed=seed)
