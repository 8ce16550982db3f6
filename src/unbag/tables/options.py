"""`FitOptions`: options of a fit, and the learners they name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.linear_model import LogisticRegression

from unbag.arguments import check_choice, check_names, check_whole
from unbag.bags import Bags
from unbag.errors import TableError
from unbag.estimators import (
    BagBoostingClassifier,
    BagBoostingRegressor,
    BagClassifier,
    BagEMClassifier,
    BagGaussianProcessClassifier,
    BagGaussianProcessRegressor,
    BagLogisticClassifier,
    BagRegressor,
    BagRidgeClassifier,
    BagRidgeRegressor,
)
from unbag.estimators.candidates import ONLY_PRIOR, default_candidates
from unbag.evaluation.checks import find_grouping
from unbag.extras import has_module, import_extra
from unbag.rules import RULES

HELD_OUT = (0.05, 0.4)
ROWS_SEEN, MANY_VALUES = 10_000_000, 1_000_000
NETS = tuple(RULES)
TREES = ("em", "boosting", "count_boosting")  # of LightGBM
REGRESSORS = ("ridge", "process", "boosting", "debiased_square")
MODELS = ("prior", "ridge", "process", "logistic", "rate_logistic", *TREES, *NETS)


@dataclass(frozen=True)
class FitOptions:
    """Options of `learn_table`.

    Parameters
    ----------
    models : tuple of str
        Candidates of the stack; by default those of `BagStackingClassifier`. "prior", "ridge",
        "process" (a Gaussian process), "logistic" (likelihood of counts), "rate_logistic" (naive,
        on the rates of bags), "em" (EM around boosted trees), "boosting" and "count_boosting"
        (trees by the debiased square loss and by the likelihood of counts), or a rule of
        `unbag.rules.RULES` for a net. Trees need the extra ``unbag[gbm]``.
    quick : bool
        Fewer candidates, folds and rounds.
    jobs : int, optional
        Number of parallel fits. By default one per processor for tables of more than a million
        values, otherwise one.
    ray : str, optional
        Address of a Ray cluster that fits the candidates, or "local" for Ray on this machine.
        Needs the extra ``unbag[ray]``.
    grouping : {"auto", "random", "natural"}
        Whether bags are random groups of rows; "auto" tests it. See `BagStackingClassifier`.
    held_out : float
        Share of the bags held out for evaluation, 0.05 to 0.4.
    seed : int
        Seed of everything random.
    memory : int
        Bytes of features that are in memory at a time. If a table has more, the stack is trained on
        a random sample of the bags, at most 500,000 rows, and compared with a ridge on all bags.
    progress : bool
        Show a progress bar.
    learning_curve : bool
        Estimate whether more bags would help. This fits quick stacks to parts of the bags, and
        takes about six times as long as one of them. Only for random bags in memory.
    """

    models: tuple[str, ...] = ()
    quick: bool = False
    jobs: int | None = None
    ray: str | None = None
    grouping: Literal["auto", "random", "natural"] = "auto"
    held_out: float = 0.2
    seed: int = 0
    memory: int = 1 << 30
    progress: bool = False
    learning_curve: bool = False

    def __post_init__(self) -> None:
        check_names("models", self.models)
        for name in self.models:
            check_choice("models", name, MODELS)
        check_choice("grouping", self.grouping, ("auto", "random", "natural"))
        check_whole("jobs", self.jobs, optional=True)
        low, high = HELD_OUT
        if not low <= self.held_out <= high:
            raise ValueError(f"held_out must lie between {low} and {high}, got {self.held_out!r}.")

    def jobs_on(self, n_values: int) -> int:
        """Number of parallel fits on a table of this many values."""
        return self.jobs or (os.cpu_count() or 1 if n_values > MANY_VALUES else 1)

    @staticmethod
    def epochs_on(n_rows: int) -> int:
        """Maximum epochs of a net: 1 to 100, for about ten million rows in all."""
        return min(max(ROWS_SEEN // n_rows, 1), 100)


def candidates_of(options: FitOptions, bags: Bags) -> list[tuple[str, Any]]:
    """Names and estimators of the candidates of a stack."""
    natural = options.grouping == "natural"
    if options.grouping == "auto":
        natural = find_grouping(bags) == "natural"
    if options.models:
        names = dict.fromkeys(options.models)
        return [(name, _learner(name, options, bags, natural=natural)) for name in names]
    found = default_candidates(bags, natural=natural, quick=options.quick, seed=options.seed)
    if not has_module("lightgbm"):  # trees of scikit-learn cannot be saved as plain data
        found = [pair for pair in found if not pair[0].startswith("em_")]
    return found


def _learner(name: str, options: FitOptions, bags: Bags, *, natural: bool) -> Any:
    if name in TREES:
        import_extra("lightgbm", extra="gbm", purpose=f"The model {name!r}")
    seed: dict[str, Any] = {"random_state": options.seed}
    effects: dict[str, Any] = {"bag_effects": natural}
    if name in NETS:
        return BagClassifier(name, max_epochs=options.epochs_on(len(bags.X)), **seed)
    makers: dict[str, Any] = {
        "prior": lambda: BagRidgeClassifier(penalties=[ONLY_PRIOR]),
        "ridge": BagRidgeClassifier,
        "process": lambda: BagGaussianProcessClassifier(**effects, **seed),
        "logistic": lambda: BagLogisticClassifier(**effects, **seed),
        "rate_logistic": lambda: BagEMClassifier(
            LogisticRegression(max_iter=300), n_rounds=0, start="rate", **effects, **seed
        ),
        "em": lambda: BagEMClassifier(**effects, **seed),
        "boosting": lambda: BagBoostingClassifier(rule="debiased_square", **seed),
        "count_boosting": lambda: BagBoostingClassifier(rule="count_likelihood", **seed),
    }
    return makers[name]()


def regressors_of(options: FitOptions, n_rows: int, *, natural: bool) -> dict[str, Any]:
    """Candidates for amounts: those requested, or ridge, process and trees (or a net)."""
    unknown = [name for name in options.models if name not in REGRESSORS]
    if unknown:
        raise TableError(
            f"Model {unknown[0]!r} is for labels. For amounts use {', '.join(REGRESSORS)} (a net)."
        )
    default = ("ridge", "process", "boosting" if has_module("lightgbm") else "debiased_square")
    makers: dict[str, Any] = {
        "ridge": BagRidgeRegressor,
        "process": lambda: BagGaussianProcessRegressor(
            bag_effects=natural, random_state=options.seed
        ),
        "boosting": lambda: BagBoostingRegressor(random_state=options.seed),
        "debiased_square": lambda: BagRegressor(
            max_epochs=options.epochs_on(n_rows), random_state=options.seed
        ),
    }
    return {name: makers[name]() for name in options.models or default}
