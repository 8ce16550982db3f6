"""`fit_table`: from a table to a model chosen and judged without a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from unbag.bags import Bags
from unbag.engine import Settings, Trial, TrialResult, held_out_risk
from unbag.engine.evaluate import scores_of
from unbag.estimators.table_data import (
    BagsInMemory,
    BagsOnDisk,
    Split,
    TrainingBags,
    net_of,
    some_bags,
    split_index,
)
from unbag.estimators.table_model import TableModel
from unbag.evaluation import (
    BagReport,
    Evaluation,
    RiskEstimate,
    check_made_bags,
    estimate_risk,
    evaluate_bags,
)
from unbag.rules import get_rule
from unbag.tables import BagTable

__all__ = ["CandidateModel", "FitOptions", "TableFit", "fit_table"]

Array = NDArray[Any]
RIDGE = "ridge"
ROWS_SEEN = 10_000_000
RULES = ("debiased_square", "proportion_log", "easy_log")


@dataclass(frozen=True)
class FitOptions:
    """How a table is fitted.

    Parameters
    ----------
    models : tuple of str
        Candidates: "ridge" for the closed form, or a rule of `unbag.rules.RULES` for a net.
    epochs : int, optional
        Most epochs of a net; the best of them is chosen on held-out bags. None shows a net ten
        million rows, in 1 to 100 epochs.
    learning_rate : float
    held_out : float
        Share of the bags that chooses, and share that judges.
    seed : int
    memory : int
        Bytes of features above which bags are streamed from disk.
    rows_per_part : int
        Rows of streamed bags in memory at a time.
    folder : path, optional
        Where streamed bags are kept meanwhile.
    progress : bool
    """

    models: tuple[str, ...] = (RIDGE, *RULES)
    epochs: int | None = None
    learning_rate: float = 3e-3
    held_out: float = 0.2
    seed: int = 0
    memory: int = 1 << 30
    rows_per_part: int = 250_000
    folder: str | Path | None = None
    progress: bool = False

    def epochs_on(self, n_rows: int) -> int:
        """Most epochs on a table of this many rows.

        Examples
        --------
        >>> FitOptions().epochs_on(5000), FitOptions().epochs_on(20_000_000)
        (100, 1)
        """
        return self.epochs or min(max(ROWS_SEEN // n_rows, 1), 100)


@dataclass(frozen=True, eq=False)
class CandidateModel:
    """A model that was tried, and its risk on the bags that choose.

    Attributes
    ----------
    name : str
        "ridge", or the rule of a net.
    risk, error : RiskEstimate
        Square risk, by which is chosen, and 0-1 error.
    epochs : int
        Best number of epochs; 0 for the closed form.
    history : dict of str to array
    """

    name: str
    risk: RiskEstimate
    error: RiskEstimate
    epochs: int = 0
    history: dict[str, Array] | None = None


@dataclass(frozen=True, eq=False)
class TableFit:
    """Everything a fit found out.

    Attributes
    ----------
    classifier : BagRidgeClassifier or BagClassifier
        The chosen model, trained on all bags but those that judge it.
    checks : BagReport
    candidates : list of CandidateModel
        The best first.
    evaluation : Evaluation
        Of the chosen model, on bags that neither trained nor chose it.
    split : Split
    streamed : bool
    """

    classifier: Any
    checks: BagReport
    candidates: list[CandidateModel]
    evaluation: Evaluation
    split: Split
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


def _fitted(
    data: BagsInMemory | BagsOnDisk,
    table: BagTable,
    split: Split,
    options: FitOptions,
    say: Callable[[str], None],
) -> TableFit:
    choosing, judging = data.held_out("choosing"), data.held_out("judging")
    say("checking the bags")
    checks = check_made_bags(_checked_bags(data, judging))
    say("training " + ", ".join(options.models))
    candidates = _candidates(data, choosing, options)
    best = candidates[0]
    say(f"training {best.name} once more, on the bags that chose it too")
    classifier = _refitted(best, data, table, options)
    scores = classifier.predict_proba(judging.X)
    evaluation = evaluate_bags(scores, judging)
    return TableFit(classifier, checks, candidates, evaluation, split, isinstance(data, BagsOnDisk))


def _checked_bags(data: BagsInMemory | BagsOnDisk, judging: Bags, max_rows: int = 200_000) -> Bags:
    """Bags that are asked whether they are random: all, or as many as can be asked quickly."""
    if isinstance(data, BagsOnDisk):
        return judging
    return data.bags.take(some_bags(data.index, max_rows=max_rows))


def _candidates(data: TrainingBags, choosing: Bags, options: FitOptions) -> list[CandidateModel]:
    found = []
    if RIDGE in options.models:
        scores = data.ridge(["training"]).predict_proba(choosing.X)
        found.append(CandidateModel(RIDGE, *_risks(scores, choosing)))
    rules = [name for name in options.models if name != RIDGE]
    if rules:
        monitor = held_out_risk(choosing, criterion="square")
        settings = _settings(options, options.epochs or 1, "held_out_risk")
        results = data.nets(_trials(rules, options), ["training"], [monitor], settings)
        found += [_candidate(result, choosing) for result in results]
    return sorted(found, key=lambda candidate: candidate.risk.value)


def _trials(rules: Sequence[str], options: FitOptions) -> list[Trial]:
    return [Trial(get_rule(name), options.learning_rate, options.seed) for name in rules]


def _settings(options: FitOptions, epochs: int, criterion: str | None) -> Settings:
    progress = options.progress
    return Settings(max_epochs=epochs, criterion=criterion, redraw=True, progress=progress)


def _candidate(result: TrialResult, choosing: Bags) -> CandidateModel:
    scores = scores_of(result, choosing.X, task=choosing.task)
    name, epochs = result.trial.rule.name, result.best_epoch + 1
    return CandidateModel(name, *_risks(scores, choosing), epochs, result.history)


def _risks(scores: Array, bags: Bags) -> tuple[RiskEstimate, RiskEstimate]:
    return estimate_risk(scores, bags, loss="square"), estimate_risk(scores, bags)


def _refitted(
    best: CandidateModel, data: TrainingBags, table: BagTable, options: FitOptions
) -> Any:
    groups = ["training", "choosing"]
    if best.name == RIDGE:
        return data.ridge(groups)
    settings = _settings(options, best.epochs, None)
    [result] = data.nets(_trials([best.name], options), groups, [], settings)
    return net_of(result, table.index, len(table.encoder.features))
