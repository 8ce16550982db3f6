"""Matching proportions against predicting well: the crossed two-point problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unbag.randomness import numpy_generator
from unbag_paper.claims.figure_style import add_line, new_figure
from unbag_paper.claims.results import Claim, ExperimentResult, Options, Progress
from unbag_paper.claims.simulation import learned_excess
from unbag_paper.exact import (
    EPRM,
    CountDebiasedSquare,
    CountProportionLog,
    CountProportionSquare,
    CountRule,
    EasyLLP,
)
from unbag_paper.theory import crossed_problem

__all__ = ["proportion_failure"]

Row = dict[str, Any]
RULES: dict[str, CountRule] = {
    "eprm": EPRM(),
    "proportion_square": CountProportionSquare(),
    "proportion_log": CountProportionLog(),
    "debiased_square": CountDebiasedSquare(),
    "easy": EasyLLP(prior=2 / 3),
}


def proportion_failure(grid: Options, progress: Progress) -> ExperimentResult:
    """How often each rule returns the hypothesis that is 1/3 worse."""
    rows = [_wrong_share(grid, size, grid["n_bags"], progress) for size in grid["bag_sizes"]]
    log_rows = [
        _wrong_share(grid, log_bag_size(n_bags, grid["delta"]), n_bags, progress)
        for n_bags in grid["log_n_bags"]
    ]
    claims = [_square_claim(rows, grid), _threshold_claim(rows), _log_claim(log_rows, grid)]
    claims += _success_claims(rows, log_rows, grid)
    return ExperimentResult("proportion_failure", claims, rows + log_rows, _draw(rows, grid))


def log_bag_size(n_bags: int, delta: float) -> int:
    """Least bag size of the proposition on the log loss, ``18 log(2n / delta)``.

    Examples
    --------
    >>> log_bag_size(200, 0.05)
    162
    """
    return math.ceil(18 * math.log(2 * n_bags / delta))


def _wrong_share(grid: Options, bag_size: int, n_bags: int, progress: Progress) -> Row:
    """Share of trials that end with excess 1/3; a tie counts as half."""
    excess = learned_excess(
        crossed_problem(),
        RULES,
        n_trials=grid["n_trials"],
        n_bags=n_bags,
        bag_size=bag_size,
        generator=numpy_generator("theory", grid["seed"], "crossed", bag_size, n_bags),
    )
    progress()
    shares = {name: float(3 * values.mean()) for name, values in excess.items()}
    return {"bag_size": bag_size, "n_bags": n_bags, **shares}


def _square_claim(rows: list[Row], grid: Options) -> Claim:
    kept = [row["proportion_square"] for row in rows if row["bag_size"] >= 7]
    return Claim(
        "Proportional square loss is 1/3-suboptimal for k >= 7",
        "Proposition 1",
        f"P(1/3-suboptimal) at least {min(kept):.4f} with {grid['n_bags']} bags",
        "1 - delta once n = Omega(log 1/delta)",
        min(kept) > 0.99,
    )


def _threshold_claim(rows: list[Row]) -> Claim:
    below = [row["proportion_square"] for row in rows if row["bag_size"] < 4]
    above = [row["proportion_square"] for row in rows if row["bag_size"] > 4]
    return Claim(
        "The failure begins at k = 5",
        "Proposition 1, its expectations",
        f"P(wrong) at most {max(below):.3f} for k < 4, at least {min(above):.3f} for k > 4",
        "2/(3k) < (k+2)/(9k) from k = 5 on; the paper asks for k >= 7",
        max(below) < 0.5 < min(above),
    )


def _log_claim(rows: list[Row], grid: Options) -> Claim:
    worst = min(row["proportion_log"] for row in rows)
    sizes = [(row["n_bags"], row["bag_size"]) for row in rows]
    return Claim(
        "Proportional log loss is 1/3-suboptimal for k >= 18 log(2n/delta)",
        "Appendix A",
        f"P(1/3-suboptimal) at least {worst:.4f} at (n, k) = {sizes}",
        f"at least 1 - delta = {1 - grid['delta']}",
        worst >= 1 - grid["delta"],
    )


def _success_claims(rows: list[Row], log_rows: list[Row], grid: Options) -> list[Claim]:
    large = [row["debiased_square"] for row in [*rows, *log_rows] if row["n_bags"] >= 200]
    easy = {row["bag_size"]: row["easy"] for row in rows}
    worst = max(easy, key=lambda size: easy[size])
    return [
        Claim(
            "The debiased loss succeeds on the same data",
            "Section 3",
            f"P(wrong) at most {max(large):.4f} over {len(large)} cells of 200 bags and more",
            "consistent",
            max(large) < 0.05,
        ),
        Claim(
            "EasyLLP succeeds on the same data",
            "Section 4",
            f"P(wrong) at most {easy[worst]:.4f} with {grid['n_bags']} bags",
            "consistent, at a rate that worsens with k",
            easy[worst] < 0.1,
            "Its noise grows with the bag size: with 200 bags of "
            f"{log_rows[1]['bag_size']} it is wrong in {log_rows[1]['easy']:.3f} of the trials.",
        ),
    ]


def _draw(rows: list[Row], grid: Options) -> Figure:
    figure, [axes] = new_figure()
    sizes = np.array([row["bag_size"] for row in rows])
    for name in RULES:
        add_line(axes, sizes, [row[name] for row in rows], label=name)
    axes.axvline(4, color="k", linewidth=0.6, linestyle=":")
    axes.set(xscale="log", xlabel="bag size k", ylabel="P(1/3-suboptimal)")
    axes.set_title(f"the crossed problem, {grid['n_bags']} bags")
    axes.legend(fontsize="small")
    return figure
