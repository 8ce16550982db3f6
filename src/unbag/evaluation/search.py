"""`search_trials`: choose rule, network, learning rate and epoch by successive halving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unbag.arguments import check_some
from unbag.bags import Bags
from unbag.bags.holdout import hold_out_bags
from unbag.evaluation.estimate import Estimate
from unbag.evaluation.risk import estimate_risk

if TYPE_CHECKING:
    from unbag.training import Settings, Training, Trial, TrialResult


@dataclass(frozen=True)
class Candidate:
    """A configuration with its risk on the held-out bags, at the best epoch so far."""

    trial: Trial
    model: Any
    risk: float = float("nan")
    n_epochs: int = 0
    best_epoch: int = -1


@dataclass(frozen=True)
class Search:
    """Result of `search_trials`.

    Attributes
    ----------
    best : TrialResult
        Trained net of the chosen configuration, at its best epoch.
    chosen : Candidate
    candidates : list of Candidate
        All configurations, best first within each round.
    risk : Estimate
        Risk of the chosen net, from bags used neither for training nor for the choice.
    trial_epochs : int
        Total number of epochs.
    """

    best: TrialResult
    chosen: Candidate
    candidates: list[Candidate]
    risk: Estimate
    trial_epochs: int


def halving_budgets(
    n_candidates: int, max_epochs: int, *, factor: int = 3
) -> list[tuple[int, int]]:
    """Number of candidates and epochs of each round.

    Examples
    --------
    >>> halving_budgets(100, 270)
    [(100, 10), (34, 30), (12, 90), (4, 270)]
    """
    rungs = 1
    while n_candidates / factor**rungs >= 2 and max_epochs // factor**rungs >= 1:
        rungs += 1
    return [
        (-(-n_candidates // factor**r), max(max_epochs // factor ** (rungs - 1 - r), 1))
        for r in range(rungs)
    ]


def search_trials(
    trials: Sequence[Trial],
    bags: Bags,
    *,
    models: Sequence[Any] = ("mlp",),
    settings: Settings | None = None,
    factor: int = 3,
    share: float = 0.2,
    report_share: float = 0.2,
    criterion: Literal["zero_one", "square"] = "square",
    seed: int = 0,
) -> Search:
    """Choose rule, learning rate, architecture and epoch by the risk on held-out bags.

    All configurations train for a few epochs at once, stacked; the best third continues until they
    have had three times as many, and so on (successive halving). A hundred configurations cost as
    many epochs as twelve full trainings, and less time, because they are stacked; see
    ``benchmarks/search.py``.

    Parameters
    ----------
    trials : sequence of Trial
        Rules, learning rates and seeds to choose from.
    bags : Bags
    models : sequence of str or function
        Architectures; each is tried with each trial.
    settings : Settings, optional
        ``max_epochs`` is that of the last round. The learning rate must be constant.
    factor : int
        One candidate in this many continues.
    share, report_share : float
        Share of the bags for the choice, and share for the final estimate.
    criterion : {"zero_one", "square"}
        Risk for the choice. The square risk of scores varies less between bags than the error of
        hard predictions. The reported risk is the error in any case.
    seed : int
        Seed of the held-out bags.

    Examples
    --------
    >>> from unbag import make_bags
    >>> from unbag.training import Settings, Trial
    >>> X = np.random.default_rng(0).normal(size=(1200, 2)).astype("float32")
    >>> bags = make_bags(X, X[:, 0] > 0, bag_size=6, seed=0)
    >>> trials = [Trial(learning_rate=rate) for rate in (1e-6, 1e-2)]
    >>> settings = Settings(max_epochs=6)
    >>> found = search_trials(trials, bags, models=["linear"], settings=settings)
    >>> found.chosen.trial.learning_rate
    0.01
    """
    from unbag.training import Settings, Training, held_out_risk
    from unbag.training.scoring import scores_of

    check_some("trials", trials)
    check_some("models", models)
    settings = settings or Settings()
    if settings.schedule != "constant":
        raise ValueError("search_trials needs schedule='constant': a rung is part of the next.")
    split = hold_out_bags(bags.sizes, judge=report_share, choose=share, seed=seed)
    training_bags, report = bags.take(split.training), bags.take(split.judging)
    settings = replace(settings, criterion="held_out_risk")
    monitor = held_out_risk(bags.take(split.choosing), criterion=criterion)
    trainings = {
        model: Training(trials, training_bags, model=model, monitors=[monitor], settings=settings)
        for model in models
    }
    done: list[Candidate] = []
    ranked: list[tuple[Any, int, TrialResult]] = []
    n_candidates = len(trainings) * len(trials)
    for n_kept, epochs in halving_budgets(n_candidates, settings.max_epochs, factor=factor):
        if len(ranked) > n_kept:
            done = [_candidate(model, result) for model, _, result in ranked[n_kept:]] + done
            _keep_only(trainings, ranked[:n_kept])
        for training in trainings.values():
            training.run(until=epochs)
        ranked = _ranked(trainings)
    best = ranked[0][2]
    candidates = [_candidate(model, result) for model, _, result in ranked] + done
    spent = sum(candidate.n_epochs for candidate in candidates)
    risk = estimate_risk(scores_of(best, report.X, task=report.task), report)
    return Search(best, candidates[0], candidates, risk, spent)


def _ranked(trainings: dict[Any, Training]) -> list[tuple[Any, int, TrialResult]]:
    """Model, number and result of every remaining trial, best first."""
    found = [
        (model, number, result)
        for model, training in trainings.items()
        for number, result in enumerate(training.results())
    ]
    risks = [result.last("held_out_risk") for *_, result in found]
    # A training that diverged has no risk, and NaN come last.
    return [found[place] for place in np.argsort(risks, kind="stable")]


def _keep_only(
    trainings: dict[Any, Training], chosen: Sequence[tuple[Any, int, TrialResult]]
) -> None:
    for model in list(trainings):
        numbers = [number for m, number, _ in chosen if m == model]
        if numbers:
            trainings[model].keep(numbers)
        else:
            del trainings[model]


def _candidate(model: Any, result: TrialResult) -> Candidate:
    risk = result.last("held_out_risk")
    return Candidate(result.trial, model, risk, result.n_epochs, result.best_epoch)
