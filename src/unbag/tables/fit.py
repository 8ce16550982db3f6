"""`fit_table`: from a table to a model chosen and judged without a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.bags.holdout import BagSplit, take_bags
from unbag.errors import TableError
from unbag.evaluation import (
    BagReport,
    Estimate,
    Evaluation,
    check_made_bags,
    estimate_risk,
    evaluate_bags,
)
from unbag.extras import import_extra
from unbag.rules import get_rule
from unbag.tables.data import (
    BagsInMemory,
    BagsOnDisk,
    TrainingBags,
    net_of,
    split_index,
)
from unbag.tables.leaks import refuse_leaks
from unbag.tables.model import TableModel
from unbag.tables.options import BOOSTED, RIDGE, FitOptions
from unbag.tables.scan import BagTable
from unbag.training import Settings, Trial, TrialResult, held_out_risk
from unbag.training.scoring import scores_of

__all__ = ["CandidateModel", "TableFit", "check_table", "fit_table"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class CandidateModel:
    """A model that was tried, and its risk on the bags that choose.

    Attributes
    ----------
    name : str
        "ridge", "boosting", "count_boosting", or the rule of a net.
    risk, error : Estimate
        Square risk, by which is chosen, and 0-1 error.
    epochs : int
        Best number of epochs, or of trees; 0 for the closed form.
    history : dict of str to array
    """

    name: str
    risk: Estimate
    error: Estimate
    epochs: int = 0
    history: dict[str, Array] | None = None


@dataclass(frozen=True, eq=False)
class TableFit:
    """Everything a fit found out.

    Attributes
    ----------
    classifier : BagRidgeClassifier, BagBoostingClassifier or BagClassifier
        The chosen model, trained on all bags but those that judge it.
    checks : BagReport
    candidates : list of CandidateModel
        The best first.
    evaluation : Evaluation
        Of the chosen model, on bags that neither trained nor chose it.
    split : BagSplit
    streamed : bool
    """

    classifier: Any
    checks: BagReport
    candidates: list[CandidateModel]
    evaluation: Evaluation
    split: BagSplit
    streamed: bool

    def model(self, table: BagTable, record: dict[str, Any]) -> TableModel:
        """What is saved."""
        return TableModel(self.classifier, table.encoder, table.roles, record)


def fit_table(
    table: BagTable,
    options: FitOptions | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
) -> TableFit:
    """Check the bags, train candidates, choose one by held-out bags and judge it by others.

    Parameters
    ----------
    table : BagTable
        From `unbag.tables.scan_table`.
    options : FitOptions, optional
    say : function
        Told what is being done.

    Notes
    -----
    Models and epochs are chosen by the square risk, which is proper: for rare labels the 0-1 error
    of all models may be that of predicting none.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from unbag.tables import Roles, scan_table
    >>> rng = np.random.default_rng(0)
    >>> x, g = rng.normal(size=2000), np.repeat(np.arange(100), 20)
    >>> rate = (x > 0).reshape(100, 20).mean(axis=1)[g]
    >>> table = scan_table(pa.table({"x": x, "g": g, "rate": rate}), Roles("g", ("rate",)))
    >>> found = fit_table(table, FitOptions(models=("ridge",)))
    >>> found.evaluation["error"].value < 0.1
    True
    """
    options = options or FitOptions()
    options = replace(options, epochs=options.epochs_on(table.index.n_rows))
    streamed = table.n_bytes > options.memory
    options = _possible(options, streamed=streamed, say=say)
    limit = options.rows_per_part if streamed else None
    split = split_index(table.index, share=options.held_out, seed=options.seed, max_rows=limit)
    say("reading the rows" + (" into files of whole bags" if streamed else ""))
    if not streamed:
        return _fitted(BagsInMemory(table, split), table, split, options, say)
    data = BagsOnDisk(table, split, rows_per_part=options.rows_per_part, folder=options.folder)
    try:
        return _fitted(data, table, split, options, say)
    finally:
        data.close()


def _possible(options: FitOptions, *, streamed: bool, say: Callable[[str], None]) -> FitOptions:
    """Leave boosting out where it cannot be: LightGBM wants all rows at once."""
    if not any(name in BOOSTED for name in options.models):
        return options
    import_extra("lightgbm", extra="gbm", purpose="Boosting")  # before the work, not after it
    if not streamed:
        return options
    rest = tuple(name for name in options.models if name not in BOOSTED)
    if not rest:
        raise TableError(
            "Boosting needs all rows in memory, and they take more than `memory`. Raise it, or "
            "try another model."
        )
    say("leaving boosting out: the rows take more than `memory`")
    return replace(options, models=rest)


def _fitted(
    data: TrainingBags,
    table: BagTable,
    split: BagSplit,
    options: FitOptions,
    say: Callable[[str], None],
) -> TableFit:
    choosing, judging = data.held_out("choosing"), data.held_out("judging")
    say("checking the bags")
    checks = check_table(table, _checked_bags(data, judging))
    if checks.raised:
        say(checks.verdict)
    say("training " + ", ".join(options.models))
    candidates = _candidates(data, choosing, options)
    best = candidates[0]
    say(f"training {best.name} once more, on the bags that chose it too")
    classifier = _refitted(best, data, table, options)
    scores = classifier.predict_proba(judging.X)
    evaluation = evaluate_bags(scores, judging)
    return TableFit(classifier, checks, candidates, evaluation, split, isinstance(data, BagsOnDisk))


def check_table(table: BagTable, bags: Bags, *, level: float = 0.05) -> BagReport:
    """Ask of some bags of a table what the guarantees assume; columns that tell labels are refused.

    See `check_bags`.
    """
    refuse_leaks(bags, table.encoder)
    return check_made_bags(bags, level=level, names=table.encoder.features)


def _checked_bags(data: TrainingBags, judging: Bags, max_rows: int = 200_000) -> Bags:
    """Bags that are asked whether they are random: all, or as many as can be asked quickly."""
    if isinstance(data, BagsOnDisk):
        return judging
    return data.bags.take(take_bags(data.index.sizes, max_rows=max_rows))


def _candidates(
    data: TrainingBags,
    choosing: Bags,
    options: FitOptions,
) -> list[CandidateModel]:
    found = []
    if RIDGE in options.models:
        scores = data.ridge(["training"]).predict_proba(choosing.X)
        found.append(CandidateModel(RIDGE, *_risks(scores, choosing)))
    trees = [name for name in options.models if name in BOOSTED]
    found += [_boosted(name, data, choosing, options) for name in trees]
    rules = [name for name in options.models if name not in (RIDGE, *BOOSTED)]
    if rules:
        monitor = held_out_risk(choosing, criterion="square")
        settings = _settings(options, options.epochs or 1, "held_out_risk")
        results = data.nets(_trials(rules, options), ["training"], [monitor], settings)
        found += [_candidate(result, choosing) for result in results]
    return sorted(found, key=lambda candidate: candidate.risk.value)


def _boosted(name: str, data: TrainingBags, choosing: Bags, options: FitOptions) -> CandidateModel:
    n_trees = options.trees_on(data.index.n_rows, name)
    clf = _boosting(name, data, ["training"], n_trees, options, choosing)
    risks = _risks(clf.predict_proba(choosing.X), choosing)
    return CandidateModel(name, *risks, clf.n_trees_, {"held_out_risk": clf.held_out_risk_})


def _boosting(
    name: str,
    data: TrainingBags,
    groups: Sequence[str],
    n_trees: int,
    options: FitOptions,
    held_out: Bags | None = None,
) -> Any:
    assert isinstance(data, BagsInMemory)  # `_possible` has seen to it
    rule, seed = BOOSTED[name], options.seed
    return data.boosting(rule, groups, n_trees=n_trees, seed=seed, held_out=held_out)


def _trials(rules: Sequence[str], options: FitOptions) -> list[Trial]:
    return [Trial(get_rule(name), options.learning_rate, options.seed) for name in rules]


def _settings(options: FitOptions, epochs: int, criterion: str | None) -> Settings:
    progress = options.progress
    return Settings(max_epochs=epochs, criterion=criterion, redraw=True, progress=progress)


def _candidate(result: TrialResult, choosing: Bags) -> CandidateModel:
    scores = scores_of(result, choosing.X, task=choosing.task)
    name, epochs = result.trial.rule.name, result.best_epoch + 1
    return CandidateModel(name, *_risks(scores, choosing), epochs, result.history)


def _risks(scores: Array, bags: Bags) -> tuple[Estimate, Estimate]:
    return estimate_risk(scores, bags, loss="square"), estimate_risk(scores, bags)


def _refitted(
    best: CandidateModel, data: TrainingBags, table: BagTable, options: FitOptions
) -> Any:
    groups = ["training", "choosing"]
    if best.name == RIDGE:
        return data.ridge(groups)
    if best.name in BOOSTED:
        return _boosting(best.name, data, groups, best.epochs, options)
    settings = _settings(options, best.epochs, None)
    [result] = data.nets(_trials([best.name], options), groups, [], settings)
    return net_of(result, table.index, len(table.encoder.features))
