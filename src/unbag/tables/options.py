"""`FitOptions`: which models are tried on a table, and how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from unbag.arguments import check_choice, check_names, check_some, check_whole
from unbag.estimators.boosting import BoostingRule
from unbag.extras import has_module
from unbag.rules import RULES

__all__ = ["BOOSTED", "BOOSTING", "HELD_OUT", "NETS", "RIDGE", "FitOptions", "default_models"]

RIDGE, BOOSTING = "ridge", "boosting"
BOOSTED: dict[str, BoostingRule] = {
    BOOSTING: "debiased_square",
    "count_boosting": "count_likelihood",
}
# The likelihood gains from more rounds: benchmarks/boosting.py --choose.
MOST_TREES = {BOOSTING: 400, "count_boosting": 800}
ROWS_SEEN = 10_000_000
TREE_ROWS = 400_000_000  # a minute of one core
NETS = ("debiased_square", "proportion_log", "easy_log")
MODELS: dict[str, tuple[str, ...]] = {
    "nets": NETS,
    **{name: (name,) for name in (RIDGE, *BOOSTED)},
    **{name: (name,) for name, rule in RULES.items() if rule.differentiable},
}
HELD_OUT = (0.05, 0.4)  # twice the share is held out


def default_models() -> tuple[str, ...]:
    """Candidates unless told otherwise; boosting only where LightGBM is installed."""
    return (RIDGE, *NETS, *([BOOSTING] if has_module("lightgbm") else []))


@dataclass(frozen=True)
class FitOptions:
    """How a table is fitted.

    Parameters
    ----------
    models : tuple of str
        Candidates: "ridge" for the closed form, "boosting" for trees by the debiased square loss,
        "count_boosting" for trees by the likelihood of counts (extra ``unbag[gbm]``; bags in memory
        only), a rule of `unbag.rules.RULES` for a net, or "nets" for those of three rules.
    epochs : int, optional
        Most epochs of a net; the best of them is chosen on held-out bags. None shows a net ten
        million rows, in 1 to 100 epochs.
    learning_rate : float
        Of the nets.
    held_out : float
        Share of the bags that chooses, and share that judges; 0.05 to 0.4.
    seed : int
        Seed of everything random: split, nets, trees.
    memory : int
        Bytes of features above which bags are streamed from disk.
    rows_per_part : int
        Rows of a part of streamed bags; three parts are in memory at a time.
    folder : path, optional
        Where streamed bags are kept meanwhile.
    progress : bool
        Show a progress bar while nets train.
    """

    models: tuple[str, ...] = field(default_factory=default_models)
    epochs: int | None = None
    learning_rate: float = 3e-3
    held_out: float = 0.2
    seed: int = 0
    memory: int = 1 << 30
    rows_per_part: int = 250_000
    folder: str | Path | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        check_names("models", self.models)
        check_some("models", self.models)
        for name in self.models:
            check_choice("models", name, tuple(MODELS))
        each = dict.fromkeys(model for name in self.models for model in MODELS[name])
        object.__setattr__(self, "models", tuple(each))
        check_whole("epochs", self.epochs, optional=True)
        check_whole("rows_per_part", self.rows_per_part)
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}.")
        low, high = HELD_OUT
        if not low <= self.held_out <= high:
            raise ValueError(f"held_out must lie between {low} and {high}, got {self.held_out!r}.")

    def epochs_on(self, n_rows: int) -> int:
        """Most epochs on a table of this many rows.

        Examples
        --------
        >>> FitOptions().epochs_on(5000), FitOptions().epochs_on(20_000_000)
        (100, 1)
        """
        return self.epochs or min(max(ROWS_SEEN // n_rows, 1), 100)

    def trees_on(self, n_rows: int, name: str) -> int:
        """Most rounds of trees, grown as the name says, on a table of this many rows.

        Examples
        --------
        >>> FitOptions().trees_on(5000, "boosting"), FitOptions().trees_on(10_000_000, "boosting")
        (400, 40)
        """
        return min(max(TREE_ROWS // n_rows, 20), MOST_TREES[name])
