"""`fit_table`: from a table to a model that is evaluated without a label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from unbag.arrays import Array
from unbag.bags import Bags
from unbag.bags.holdout import (
    MIN_BAGS,
    MIN_PART,
    BagSplit,
    block_folds,
    hold_out_bags,
    take_bags,
)
from unbag.bags.validation import check_proportions_differ
from unbag.errors import TableError
from unbag.estimators import BagStackingClassifier
from unbag.evaluation import (
    AmountEvaluation,
    BagLearningCurve,
    BagReport,
    ColumnImportance,
    Estimate,
    Evaluation,
    bag_learning_curve,
    check_made_bags,
    column_importance,
    evaluate_bags,
)
from unbag.evaluation.amounts import evaluate_amounts
from unbag.evaluation.results import trivial_baseline
from unbag.frames import TableEncoder
from unbag.parallel import Executor, get_executor
from unbag.randomness import numpy_generator
from unbag.tables.index import BagIndex
from unbag.tables.leaks import refuse_leaks
from unbag.tables.options import NETS, STREAMED, FitOptions, candidates_of, regressors_of
from unbag.tables.out_of_core import fit_streamed
from unbag.tables.parts import BagParts
from unbag.tables.reading import TableFiles
from unbag.tables.scan import BagTable, TableBags, read_bags

Say = Callable[[str], None]
CHECKED_ROWS = 200_000
N_FOLDS = 4  # that choose a regressor


@dataclass(frozen=True)
class CandidateModel:
    """A learner with its weight in the model, and its square risk if known."""

    name: str
    weight: float
    risk: Estimate | None


@dataclass(frozen=True, eq=False)
class TableFit:
    """Result of a fit.

    `checks` is None for amounts; `evaluation` and `importance` come from held-out bags;
    `curve` is the learning curve, if requested.
    """

    classifier: Any
    checks: BagReport | None
    candidates: list[CandidateModel]
    evaluation: Evaluation | AmountEvaluation
    importance: ColumnImportance | None
    split: BagSplit
    streamed: bool
    curve: BagLearningCurve | None = None


def fit_table(
    table: BagTable,
    options: FitOptions | None = None,
    *,
    say: Say = lambda text: None,
) -> TableFit:
    """Check the bags, fit a stack of learners, and evaluate it on held-out bags.

    `say` is called with a message at each step.
    """
    options = options or FitOptions()
    if table.index.task == "amount":
        return _fit_amounts(table, options, say)
    check_proportions_differ(table.index.proportions)
    fit = _fit_on_disk if table.n_bytes > options.memory else _fit_in_memory
    return fit(table, options, say)


def _fit_amounts(table: BagTable, options: FitOptions, say: Say) -> TableFit:
    """Choose a regressor by cross-validation over bags, and evaluate it on held-out bags."""
    if options.grouping == "natural" or table.n_bytes > options.memory:
        raise TableError(
            "Amounts are learned from random groups of rows that fit into memory; got grouping "
            f"{options.grouping!r} and {table.n_bytes >> 20} of {options.memory >> 20} megabytes."
        )
    split, bags = _split(table.index, options, streamed=False), read_bags(table)
    refuse_leaks(bags, table.encoder)
    blocks = None if table.index.blocks is None else table.index.blocks[split.training]
    say("training " + ", ".join(regressors_of(options, bags.n_instances)))
    model, risks = _choose_regressor(bags.take(split.training), options, blocks)
    order = sorted(risks, key=lambda name: risks[name].value)
    tried = [CandidateModel(name, float(name == order[0]), risks[name]) for name in order]
    judging = bags.take(split.judging).gathered()
    found = evaluate_amounts(model.predict(judging.X), judging)
    return TableFit(model, None, tried, found, None, split=split, streamed=False)


def _choose_regressor(
    bags: Bags, options: FitOptions, blocks: Array | None
) -> tuple[Any, dict[str, Estimate]]:
    """Regressor with the lowest cross-validated error, refitted to all bags, and all errors."""
    folds = block_folds(bags.n_bags, N_FOLDS, seed=options.seed, blocks=blocks)
    models, risks = regressors_of(options, bags.n_instances), {}
    for name, model in models.items():
        predictions = np.zeros(len(bags.X))
        for fold in range(folds.max() + 1):
            fitted = clone(model).fit_bags(bags.take(np.flatnonzero(folds != fold)))
            rows = bags.rows_of(np.flatnonzero(folds == fold))
            predictions[rows] = fitted.predict(bags.X[rows])
        risks[name] = evaluate_amounts(predictions, bags)["mse"]
    best = min(risks, key=lambda name: risks[name].value)
    return models[best].fit_bags(bags), risks


def _split(index: BagIndex, options: FitOptions, *, streamed: bool) -> BagSplit:
    if index.n_bags < MIN_BAGS:
        raise TableError(
            f"Training and evaluation need at least {MIN_BAGS} bags, got {index.n_bags}. Otherwise "
            "use unbag.BagRidgeClassifier and unbag.cross_fit_risk(..., n_splits=2) in Python."
        )
    share, seed = options.held_out, options.seed
    choose, limit = (share, options.rows_per_part) if streamed else (0.0, None)
    if index.blocks is not None:
        return _split_blocks(index, share, seed, n_parts=1 + streamed, max_rows=limit or np.inf)
    return hold_out_bags(index.sizes, judge=share, choose=choose, seed=seed, max_rows=limit)


def _split_blocks(
    index: BagIndex, share: float, seed: int, *, n_parts: int, max_rows: float
) -> BagSplit:
    """Hold out parts of whole blocks: this share of the bags each, at least three, in few rows."""
    names, blocks = np.unique(np.asarray(index.blocks), return_inverse=True)
    if len(names) < n_parts + 2:
        raise TableError(
            f"Training and evaluation need at least {n_parts + 2} blocks, got {len(names)}."
        )
    order = numpy_generator(seed, "blocks").permutation(len(names))
    parts = []
    for n_left in range(n_parts + 1, 1, -1):  # blocks for the other parts, two for training
        n_bags = np.cumsum(np.bincount(blocks)[order])
        n_rows = np.cumsum(np.bincount(blocks, index.sizes)[order])
        least, wanted = np.searchsorted(n_bags, [MIN_PART, share * index.n_bags]) + 1
        n_held = max(least, min(wanted, (n_rows <= max_rows).sum()))
        n_held = min(n_held, len(order) - n_left)
        if n_bags[n_held - 1] < 2:
            raise TableError(
                f"Held-out blocks must have at least 2 bags, got 1 of {index.n_bags} in "
                f"{len(names)} blocks. Name a column with more or with larger blocks."
            )
        parts.append(np.flatnonzero(np.isin(blocks, order[:n_held])))
        order = order[n_held:]
    judging, choosing = [*parts, np.empty(0, dtype=int)][:2]
    return BagSplit(np.flatnonzero(np.isin(blocks, order)), choosing, judging)


def _fit_in_memory(table: BagTable, options: FitOptions, say: Say) -> TableFit:
    split = _split(table.index, options, streamed=False)
    say("reading the rows")
    bags, index = read_bags(table), table.index
    checks = _checked(table, bags.take(take_bags(index.sizes, max_rows=CHECKED_ROWS)), say)
    training = bags.take(split.training)
    candidates = candidates_of(options, training)
    say("training " + ", ".join(name for name, _ in candidates))
    stack = BagStackingClassifier(
        candidates,
        grouping=options.grouping,
        quick=options.quick,
        n_jobs=options.jobs_on(training.X.size),
        ray=options.ray,
        verbose=options.progress,
        random_state=options.seed,
    )
    blocks = None if index.blocks is None else index.blocks[split.training]
    # Workers of a cluster read their own bags, if these are in files.
    files = options.ray is not None and isinstance(table.source, TableFiles)
    source = TableBags(table, split.training) if files else None
    stack.fit_bags(training, blocks=blocks, source=source)
    risks = stack.candidate_risks_
    tried = [CandidateModel(n, w, risks.get(n)) for n, w in stack.weights_.items()]
    tried.sort(key=lambda candidate: -candidate.weight)
    say("measuring column importance")
    judged = _judged(stack, bags.take(split.judging), table, options)
    curve = None
    if options.learning_curve and stack.grouping_ == "natural":
        say("no learning curve: the risk cannot be estimated from natural groups")
    elif options.learning_curve:
        say("estimating the learning curve")
        executor = get_executor(n_jobs=options.jobs_on(bags.X.size), ray=options.ray)
        curve = table_learning_curve(bags, executor=executor, seed=options.seed)
    return TableFit(stack, checks, tried, *judged, split=split, streamed=False, curve=curve)


def _fit_on_disk(table: BagTable, options: FitOptions, say: Say) -> TableFit:
    models = _streamed_models(options, say)
    if options.grouping == "natural":
        say("taking the bags for random groups: the rows take more than `memory`")
    split = _split(table.index, options, streamed=True)
    say("reading the rows into files of whole bags")
    n_rows, place = options.rows_per_part, options.folder
    with BagParts(table, vars(split), rows_per_part=n_rows, folder=place) as parts:
        judging = parts.bags(*parts.parts["judging"])
        checks = _checked(table, judging, say)
        say("training " + ", ".join(models))
        classifier, risks = fit_streamed(parts, models, options)
    tried = [CandidateModel(n, float(not i), risk) for i, (n, risk) in enumerate(risks.items())]
    if options.learning_curve:
        say("no learning curve: the rows take more than `memory`")
    judged = _judged(classifier, judging, table, options)
    return TableFit(classifier, checks, tried, *judged, split=split, streamed=True)


def _streamed_models(options: FitOptions, say: Say) -> tuple[str, ...]:
    """Models that can be trained on streamed bags."""
    if not options.models:
        return STREAMED
    rest = tuple(name for name in options.models if name in ("ridge", *NETS))
    left_out = [name for name in options.models if name not in rest]
    if not rest:
        raise TableError(
            f"{', '.join(left_out)} needs all rows in memory, and they take more than `memory`. "
            "Raise it, or try ridge or a net."
        )
    if left_out:
        say(f"leaving out {', '.join(left_out)}: the rows take more than `memory`")
    return rest


def check_table(table: BagTable, bags: Bags, *, level: float = 0.05) -> BagReport:
    """Run `check_bags` on some bags of a table; raise if a column leaks labels."""
    refuse_leaks(bags, table.encoder)
    return check_made_bags(bags, level=level, names=table.encoder.features)


def _checked(table: BagTable, bags: Bags, say: Say) -> BagReport:
    say("checking the bags")
    checks = check_table(table, bags)
    if checks.raised:
        say(checks.verdict)
    return checks


def _judged(
    classifier: Any, bags: Bags, table: BagTable, options: FitOptions
) -> tuple[Evaluation, ColumnImportance | None]:
    """Evaluation and column importance on held-out bags."""
    bags, names = bags.gathered(), table.roles.targets
    found = evaluate_bags(classifier.predict_proba(bags.X), bags, names=names)
    # The baseline is most precise from all bags.
    found = replace(found, baseline=trivial_baseline(table.index, names))
    return found, table_importance(classifier, bags, table.encoder, seed=options.seed)


# Rows scored in all: a few seconds. One permutation of many bags is better than several of few.
SCORED_ROWS = 300_000


def table_importance(
    classifier: Any, bags: Bags, encoder: TableEncoder, *, seed: int = 0
) -> ColumnImportance | None:
    """Importance of whole columns for a classifier of encoded rows, on some of the bags.

    None for natural groups with several outputs or noise, for which there is no measure.
    """
    natural = getattr(classifier, "grouping_", "random") == "natural"
    if natural and (bags.task != "binary" or bags.noise_variance is not None):
        return None
    places = {column.name: list(range(s.start, s.stop)) for column, s in encoder.places}
    max_rows = max(SCORED_ROWS // len(places), 500)
    return column_importance(
        classifier,
        bags.take(take_bags(bags.sizes, max_rows=max_rows, seed=seed)).gathered(),
        columns=places,
        grouping="natural" if natural else "random",
        n_repeats=1,
        random_state=seed,
    )


def table_learning_curve(bags: Bags, *, executor: Executor, seed: int = 0) -> BagLearningCurve:
    """Cross-fitted error of quick stacks against the number of bags."""
    bags = bags.gathered()
    noise = bags.noise_variance
    return bag_learning_curve(
        BagStackingClassifier(grouping="random", quick=True, random_state=seed),
        bags.X,
        np.repeat(bags.proportions, bags.sizes, axis=0),
        bags=np.repeat(np.arange(bags.n_bags), bags.sizes),
        noise_variance=None if noise is None else np.repeat(noise, bags.sizes),
        n_splits=4,
        executor=executor,
        random_state=seed,
    )
