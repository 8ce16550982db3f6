"""Choose models, rules, learning rates and epochs by bags alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbag.backends import Executor, SerialExecutor
from unbag.bags import BagKFold, Bags, BagTarget, bags_of, split_bags
from unbag.errors import BagDataError
from unbag.evaluation.evaluate import evaluate_bags, scores_of
from unbag.evaluation.risk import RiskEstimate, estimate_risk

if TYPE_CHECKING:
    from unbag.engine import Settings, Trial, TrialResult

__all__ = [
    "Candidate",
    "Search",
    "bag_scorer",
    "cross_fit_risk",
    "halving_budgets",
    "search_trials",
]

Array = NDArray[Any]
# Metrics of which less is better: scikit-learn maximises, so their scorers change sign.
LOSSES = {"error", "brier", "log_loss", "balanced_error", "calibration_error"}


def bag_scorer(metric: str = "error") -> Callable[..., float]:
    """Scorer for scikit-learn's searches, from held-out whole bags.

    Parameters
    ----------
    metric : str
        A metric of `unbag.evaluate`. Losses are negated, so that more is better.

    Notes
    -----
    Give the search a `BagTarget` and ``cv=BagKFold(...)``: bags then stay whole and the scorer sees
    them. Without bags it refuses, rather than score proportions as if they were labels.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from unbag import BagRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3)); labels = X[:, 0] > 0
    >>> ids = np.repeat(np.arange(60), 10)
    >>> y = BagTarget(ids, labels.reshape(60, 10).mean(axis=1)[ids])
    >>> grid = {"penalties": [[0.1], [10.0]]}
    >>> search = GridSearchCV(
    ...     BagRidgeClassifier(), grid, cv=BagKFold(3), scoring=bag_scorer("auc")
    ... )
    >>> bool(search.fit(X, y).best_score_ > 0.8)
    True
    """

    def score(estimator: Any, X: Any, y: Any, *, bags: Any = None) -> float:
        ids = bags_of(y, bags)
        if ids is None:
            raise BagDataError(
                "bag_scorer needs the bags: pass a BagTarget as y, with cv=BagKFold(...)."
            )
        data = Bags.from_arrays(X, bags=ids, y=np.asarray(y))
        value = _metric(scores_of(estimator, X), data, metric)
        return -value if metric in LOSSES else value

    return score


def _metric(scores: Any, bags: Bags, metric: str) -> float:
    if metric in ("error", "brier"):
        loss: Literal["zero_one", "square"] = "zero_one" if metric == "error" else "square"
        return estimate_risk(scores, bags, loss=loss).value
    return evaluate_bags(scores, bags)[metric].value


def cross_fit_risk(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    bags: Any = None,
    n_splits: int = 5,
    loss: Literal["zero_one", "square"] = "zero_one",
    confidence: float = 0.95,
    executor: Executor | None = None,
) -> RiskEstimate:
    """Estimate an estimator's risk with every bag scored by a fit that did not see it.

    For too few bags to hold some out: all of them serve for training and for the estimate.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned and fitted `n_splits` times.
    X, y, bags
        As for `fit`.
    n_splits : int
    loss : {"zero_one", "square"}
    confidence : float
    executor : Executor, optional
        Where the fits run, such as ``unbag.backends.get_executor(ray="local")``; by default here.

    Notes
    -----
    It is the mean risk of fits to a share of the bags, a little above that of a fit to all.

    Examples
    --------
    >>> from unbag import BagRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3)); labels = X[:, 0] > 0
    >>> ids = np.repeat(np.arange(40), 10)
    >>> y = labels.reshape(40, 10).mean(axis=1)[ids]
    >>> cross_fit_risk(BagRidgeClassifier(), X, y, bags=ids).value < 0.2
    True
    """
    ids = bags_of(y, bags)
    if ids is None:
        raise BagDataError("cross_fit_risk needs the bags: pass `bags`, or a BagTarget as y.")
    X, target = np.asarray(X), BagTarget(ids, np.asarray(y))
    folds = list(BagKFold(n_splits).split(X, target))
    parts = (executor or SerialExecutor()).map(_fit_fold, folds, shared=(estimator, X, target))
    scores = np.zeros((len(X), *parts[0].shape[1:]))
    for (_, test), part in zip(folds, parts, strict=True):
        scores[test] = part
    data = Bags.from_arrays(X, bags=ids, y=np.asarray(y))
    own = [np.unique(data.bag_of_row[test]) for _, test in folds]
    if min(len(bags_of_fold) for bags_of_fold in own) < 2:
        raise BagDataError(
            f"n_splits must leave at least two bags in each fold, got {n_splits} for "
            f"{data.n_bags} bags."
        )
    return estimate_risk(scores, data, loss=loss, confidence=confidence, parts=own)


def _fit_fold(shared: tuple[Any, Array, BagTarget], fold: tuple[Array, Array]) -> Array:
    """Scores of a fold's held-out instances by a fit to the others."""
    from sklearn.base import clone

    (estimator, X, target), (train, test) = shared, fold
    return np.asarray(scores_of(clone(estimator).fit(X[train], target[train]), X[test]))


@dataclass(frozen=True)
class Candidate:
    """A configuration and how it fared.

    Attributes
    ----------
    trial : Trial
        Rule, learning rate and seed.
    model : str or function
    risk : float
        Estimated risk on the held-out bags, at the best epoch so far.
    n_epochs : int
        Epochs of its longest training.
    best_epoch : int
    """

    trial: Trial
    model: Any
    risk: float = float("nan")
    n_epochs: int = 0
    best_epoch: int = -1


@dataclass(frozen=True)
class Search:
    """Outcome of a search without labels.

    Attributes
    ----------
    best : TrialResult
        Trained net of the chosen configuration, at its best epoch.
    chosen : Candidate
    candidates : list of Candidate
        All of them, the best first; those that went further before the others.
    risk : RiskEstimate
        Risk of the chosen net, from bags that neither trained nor chose it.
    trial_epochs : int
        Epochs trained in all.
    """

    best: TrialResult
    chosen: Candidate
    candidates: list[Candidate]
    risk: RiskEstimate
    trial_epochs: int


def halving_budgets(
    n_candidates: int, max_epochs: int, *, factor: int = 3
) -> list[tuple[int, int]]:
    """How many candidates train for how many epochs, rung by rung.

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
    criterion: Literal["zero_one", "square"] = "zero_one",
    seed: int = 0,
) -> Search:
    """Choose rule, learning rate, architecture and epoch by the risk on held-out bags.

    All configurations train for a few epochs at once, stacked; the best third of them train again
    for three times as long, and so on (successive halving). A hundred configurations cost as many
    epochs as fifteen full trainings, and being stacked, far less time.

    Parameters
    ----------
    trials : sequence of Trial
        Rules, learning rates and seeds to choose from.
    bags : Bags
    models : sequence of str or function
        Architectures; each is tried with each trial.
    settings : Settings, optional
        ``max_epochs`` is what the last rung trains for. The learning rate must be constant.
    factor : int
        One candidate in this many goes on.
    share, report_share : float
        Share of the bags that choose, and share that the risk of the choice is estimated from.
    criterion : {"zero_one", "square"}
    seed : int
        Decides which bags are held out.

    Examples
    --------
    >>> from unbag import make_bags
    >>> from unbag.engine import Settings, Trial
    >>> X = np.random.default_rng(0).normal(size=(1200, 2)).astype("float32")
    >>> bags = make_bags(X, X[:, 0] > 0, bag_size=6, seed=0)
    >>> trials = [Trial(learning_rate=rate) for rate in (1e-6, 1e-2)]
    >>> settings = Settings(max_epochs=6)
    >>> found = search_trials(trials, bags, models=["linear"], settings=settings)
    >>> found.chosen.trial.learning_rate
    0.01
    """
    from unbag.engine import Settings

    settings = settings or Settings()
    if settings.schedule != "constant":
        raise ValueError("search_trials needs schedule='constant': a rung is part of the next.")
    rest, report = split_bags(bags, share=report_share, seed=seed)
    train_bags, choosing = split_bags(rest, share=share / (1 - report_share), seed=seed)
    alive = [Candidate(trial, model) for model in models for trial in trials]
    done: list[Candidate] = []
    results: list[TrialResult] = []
    spent = 0
    for n_kept, epochs in halving_budgets(len(alive), settings.max_epochs, factor=factor):
        alive, dropped = alive[:n_kept], alive[n_kept:]
        done = dropped + done
        rung = replace(settings, max_epochs=epochs, criterion="held_out_risk")
        alive, results = _rung(alive, train_bags, choosing, rung, criterion)
        spent += sum(candidate.n_epochs for candidate in alive)
    risk = _reported(results[0], report, criterion)
    return Search(results[0], alive[0], alive + done, risk, spent)


def _rung(
    candidates: list[Candidate],
    train_bags: Bags,
    choosing: Bags,
    settings: Settings,
    criterion: Literal["zero_one", "square"],
) -> tuple[list[Candidate], list[TrialResult]]:
    """Train candidates, those of one architecture at once; the best first."""
    from unbag.engine import held_out_risk, train

    monitor = held_out_risk(choosing, criterion=criterion)
    found: list[tuple[Candidate, TrialResult]] = []
    for model in dict.fromkeys(c.model for c in candidates):
        same = [c for c in candidates if c.model == model]
        results = train(
            [c.trial for c in same], train_bags, model=model, monitors=[monitor], settings=settings
        )
        for candidate, result in zip(same, results, strict=True):
            risk, epoch = result.last("held_out_risk"), result.best_epoch
            found.append(
                (replace(candidate, risk=risk, n_epochs=result.n_epochs, best_epoch=epoch), result)
            )
    found.sort(key=lambda pair: pair[0].risk)
    return [candidate for candidate, _ in found], [result for _, result in found]


def _reported(
    result: TrialResult, bags: Bags, criterion: Literal["zero_one", "square"]
) -> RiskEstimate:
    import torch

    from unbag.engine.batches import as_inputs, as_tensor

    with torch.no_grad():
        logits = result.model(as_inputs(as_tensor(bags.X, torch.device("cpu"))))
    scores = logits.softmax(dim=-1) if bags.task == "multiclass" else logits.sigmoid()
    return estimate_risk(scores.reshape(len(bags.X), -1), bags, loss=criterion)
