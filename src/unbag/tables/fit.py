"""`fit_table`: from a table to a model that is evaluated without a label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
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
    NaturalEvaluation,
    bag_learning_curve,
    check_made_bags,
    column_importance,
    evaluate_bags,
)
from unbag.evaluation.amounts import evaluate_amounts, evaluate_averages
from unbag.evaluation.bag_effects import has_exact_counts
from unbag.evaluation.checks import find_grouping
from unbag.evaluation.natural import evaluate_natural
from unbag.evaluation.results import trivial_baseline
from unbag.frames import TableEncoder
from unbag.parallel import Executor, get_executor
from unbag.randomness import numpy_generator
from unbag.tables.index import BagIndex
from unbag.tables.leaks import refuse_leaks
from unbag.tables.options import FitOptions, candidates_of, regressors_of
from unbag.tables.out_of_core import better_of, read_with_sums, rows_in_memory
from unbag.tables.reading import TableFiles
from unbag.tables.scan import BagTable, TableBags, read_bags

Say = Callable[[str], None]
CHECKED_ROWS = 200_000
N_FOLDS = 4  # that choose a regressor
NATURAL = "Bags are taken for natural groups."


@dataclass(frozen=True)
class CandidateModel:
    """A learner with its weight in the model, and its square risk if known."""

    name: str
    weight: float
    risk: Estimate | None


@dataclass(frozen=True, eq=False)
class TableFit:
    """Result of a fit.

    `evaluation` and `importance` come from held-out bags; `sampled` is whether the stack was
    trained on a sample of the bags; `curve` is the learning curve, if requested.
    """

    classifier: Any
    checks: BagReport
    candidates: list[CandidateModel]
    evaluation: Evaluation | NaturalEvaluation | AmountEvaluation
    importance: ColumnImportance | None
    split: BagSplit
    sampled: bool
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
    return _fit_labels(table, options, say)


def _fit_amounts(table: BagTable, options: FitOptions, say: Say) -> TableFit:
    """Choose a regressor by cross-validation over bags, and evaluate it on held-out bags."""
    if table.n_bytes > options.memory:
        raise TableError(
            "Amounts are learned from rows that fit into memory, got "
            f"{table.n_bytes >> 20} of {options.memory >> 20} megabytes."
        )
    split, bags = _split(table, options), read_bags(table)
    some = bags.take(take_bags(bags.sizes, max_rows=CHECKED_ROWS))
    checks = _checked(table, some, say)
    natural = options.grouping == "natural"
    if options.grouping == "auto":
        natural = find_grouping(some) == "natural"
    blocks = None if table.index.blocks is None else table.index.blocks[split.training]
    models = regressors_of(options, bags.n_instances, natural=natural)
    say("training " + ", ".join(models))
    judge: Any = partial(evaluate_averages, grouping=NATURAL) if natural else evaluate_amounts
    model, risks = _choose_regressor(models, bags.take(split.training), judge, options.seed, blocks)
    order = sorted(risks, key=lambda name: risks[name].value)
    tried = [CandidateModel(name, float(name == order[0]), risks[name]) for name in order]
    judging = bags.take(split.judging).gathered()
    found = judge(model.predict(judging.X), judging)
    return TableFit(model, checks, tried, found, None, split, sampled=False)


def _choose_regressor(
    models: dict[str, Any], bags: Bags, judge: Any, seed: int, blocks: Array | None
) -> tuple[Any, dict[str, Estimate]]:
    """Regressor with the lowest cross-validated error, refitted to all bags, and all errors."""
    folds = block_folds(bags.n_bags, N_FOLDS, seed=seed, blocks=blocks)
    risks: dict[str, Estimate] = {}
    for name, model in models.items():
        predictions = np.zeros(len(bags.X))
        for fold in range(folds.max() + 1):
            fitted = clone(model).fit_bags(bags.take(np.flatnonzero(folds != fold)))
            rows = bags.rows_of(np.flatnonzero(folds == fold))
            predictions[rows] = fitted.predict(bags.X[rows])
        found = judge(predictions, bags)
        risks[name] = found["group_mse" if found.natural else "mse"]
    best = min(risks, key=lambda name: risks[name].value)
    return models[best].fit_bags(bags), risks


def _split(table: BagTable, options: FitOptions) -> BagSplit:
    """Hold out bags; of a large table also some for a choice, and sample the training bags."""
    index, share, seed = table.index, options.held_out, options.seed
    if index.n_bags < MIN_BAGS:
        raise TableError(
            f"Training and evaluation need at least {MIN_BAGS} bags, got {index.n_bags}. Otherwise "
            "use unbag.BagRidgeClassifier and unbag.cross_fit_risk(..., n_splits=2) in Python."
        )
    large = table.n_bytes > options.memory and index.task != "amount"
    most, limit = rows_in_memory(table, options.memory) if large else (None, None)
    if index.blocks is None:
        choose = share * large
        split = hold_out_bags(index.sizes, judge=share, choose=choose, seed=seed, max_rows=limit)
    else:
        split = _split_blocks(index, share, seed, n_parts=1 + large, max_rows=limit or np.inf)
    if most is None:
        return split
    sample = take_bags(index.sizes[split.training], max_rows=most, seed=seed)
    return replace(split, training=split.training[sample])


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


def _fit_labels(table: BagTable, options: FitOptions, say: Say) -> TableFit:
    split, large = _split(table, options), table.n_bytes > options.memory
    say("reading the rows")
    kept = np.sort(np.concatenate(list(vars(split).values())))
    executor = get_executor(n_jobs=options.jobs or 1, ray=options.ray)
    bags, sums = read_with_sums(table, kept, executor) if large else (read_bags(table), None)
    training, choosing, judging = (
        bags.take(np.searchsorted(kept, part)) for part in vars(split).values()
    )
    checks = _checked(table, bags.take(take_bags(bags.sizes, max_rows=CHECKED_ROWS)), say)
    if sums is not None:
        say(f"training on {len(split.training):,} random bags of {table.index.n_bags:,}")
    stack = _fit_stack(table, training, split.training, options, say)
    risks, model = stack.candidate_risks_, stack
    tried = [CandidateModel(n, w, risks.get(n)) for n, w in stack.weights_.items()]
    wanted = stack.grouping_ == "random" and (not options.models or "ridge" in options.models)
    if sums is not None and wanted:
        model, risk, split = better_of(stack, table.index, sums, split, choosing.gathered())
        share = float(model is not stack)
        tried = [replace(candidate, weight=(1 - share) * candidate.weight) for candidate in tried]
        tried.append(CandidateModel("ridge on all bags", share, risk))
    tried.sort(key=lambda candidate: -candidate.weight)
    say("measuring column importance")
    judged = _judged(model, judging, table, options, split)
    curve = None
    if options.learning_curve and stack.grouping_ == "natural":
        say("no learning curve: the risk cannot be estimated from natural groups")
    elif options.learning_curve:
        say("estimating the learning curve")
        executor = get_executor(n_jobs=options.jobs_on(bags.X.size), ray=options.ray)
        curve = table_learning_curve(bags, executor=executor, seed=options.seed)
    return TableFit(model, checks, tried, *judged, split, large, curve)


def _fit_stack(
    table: BagTable, bags: Bags, positions: Array, options: FitOptions, say: Say
) -> BagStackingClassifier:
    candidates = candidates_of(options, bags)
    say("training " + ", ".join(name for name, _ in candidates))
    stack = BagStackingClassifier(
        candidates,
        grouping=options.grouping,
        quick=options.quick,
        n_jobs=options.jobs_on(bags.X.size),
        ray=options.ray,
        verbose=options.progress,
        random_state=options.seed,
    )
    blocks = None if table.index.blocks is None else table.index.blocks[positions]
    # Workers of a cluster read their own bags, if these are in files.
    files = options.ray is not None and isinstance(table.source, TableFiles)
    source = TableBags(table, positions) if files else None
    return stack.fit_bags(bags, blocks=blocks, source=source)


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
    classifier: Any, bags: Bags, table: BagTable, options: FitOptions, split: BagSplit
) -> tuple[Evaluation | NaturalEvaluation, ColumnImportance | None]:
    """Evaluation, as the grouping allows, and column importance on held-out bags."""
    bags, names, blocks = bags.gathered(), table.roles.targets, table.index.blocks
    scores = classifier.predict_proba(bags.X)
    found: Evaluation | NaturalEvaluation
    natural = getattr(classifier, "grouping_", "random") == "natural"
    if natural and has_exact_counts(bags):
        own = None if blocks is None else blocks[split.judging]
        found = evaluate_natural(scores, bags, blocks=own, grouping=NATURAL, names=names)
    else:
        random = evaluate_bags(scores, bags, names=names)
        found = _without_claims(random) if natural else random
    # The baseline is most precise from all bags.
    found = replace(found, baseline=trivial_baseline(table.index, names))
    return found, table_importance(classifier, bags, table.encoder, seed=options.seed)


def _without_claims(found: Evaluation) -> Evaluation:
    """The shares of classes alone: the other metrics are those of random groups."""
    untold: dict[str, Any] = {
        "value": np.nan,
        "low": np.nan,
        "high": np.nan,
        "standard_error": np.nan,
    }
    estimates = {"error": replace(found["error"], **untold, reason="bags are natural groups")}
    estimates |= {name: found[name] for name in found if name.startswith("prior")}
    unknown: dict[str, Any] = {"roc": [], "calibration": [], "confusion": np.nan * found.confusion}
    return replace(found, estimates=estimates, equivalent_labels=np.nan, **unknown)


# Rows scored in all: a few seconds. One permutation of many bags is better than several of few.
SCORED_ROWS = 250_000


def table_importance(
    classifier: Any, bags: Bags, encoder: TableEncoder, *, seed: int = 0
) -> ColumnImportance | None:
    """Importance of whole columns for a classifier of encoded rows, on some of the bags.

    None for natural groups with noise, for which there is no measure.
    """
    natural = getattr(classifier, "grouping_", "random") == "natural"
    if natural and bags.noise_variance is not None:
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
