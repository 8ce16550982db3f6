"""Steps of the paper's proofs that do not hold as written; every theorem survives them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unbag.randomness import numpy_generator
from unbag_paper.claims.figure_style import add_line, new_figure
from unbag_paper.claims.results import Claim, ExperimentResult, Options, Progress
from unbag_paper.claims.statistics import fit_power
from unbag_paper.theory import crossed_problem, easy_offset_range

__all__ = ["proof_steps"]

Row = dict[str, Any]


def proof_steps(grid: Options, progress: Progress) -> ExperimentResult:
    """Four statements inside the proofs, measured or computed."""
    rows = [_marginal_row(grid, n_bags, progress) for n_bags in grid["n_bags"]]
    claims = [_marginal_claim(rows), _hoeffding_claim(), _range_claim(), _slope_claim()]
    return ExperimentResult("proof_steps", claims, rows, _draw(rows, grid))


def _marginal_row(grid: Options, n_bags: int, progress: Progress) -> Row:
    """Root mean square of the empirical bias of the crossed f_1, whose bias E f - p is 0."""
    rng = numpy_generator("theory", grid["seed"], "proof steps", n_bags)
    counts = crossed_problem().sample_counts(
        grid["n_trials"], n_bags, bag_size=grid["bag_size"], generator=rng
    )
    total = n_bags * grid["bag_size"]
    gaps = (counts.predicted[:, 0] - counts.positives[:, 0]).sum(axis=1) / total
    progress()
    size = float(np.sqrt(np.mean(gaps**2)))
    return {
        "n_bags": n_bags,
        "deviation": size,
        "standard_error": size / math.sqrt(2 * grid["n_trials"]),
        "exact": math.sqrt(2 / 3 / total),
        "stated": 1 / total,
    }


def _marginal_claim(rows: list[Row]) -> Claim:
    columns = [[row[name] for row in rows] for name in ("n_bags", "deviation", "standard_error")]
    slope = fit_power(*columns)
    return Claim(
        "|mean f - mean y| deviates by (d + log 1/delta)/(nk) only, when E f = p",
        "Appendix C, the bound on |mean f - p|",
        f"slope {slope}: sqrt(L(f) / (nk)), since E(f-y)^2 = 2/3 while E(f-y) = 0 (crossed f_1)",
        "slope -1, from E g^2 <= E g for g = f - y with E f >= p",
        slope.near(-1, curvature=0.05),
        "The variance assumption with A = 0, B = 1 needs f to have no false negatives. With "
        "A = L(f) instead, the next display of the proof, the bound on the debiasing term, "
        "still follows, and with it Theorem 2.",
        refuted=True,
    )


def _hoeffding_claim() -> Claim:
    margin = 0.75 - 1 / math.sqrt(1.5 * 11 + 0.5) - 0.5
    return Claim(
        "At k = 11 a near-optimal f beats 1 - f on a bag with a margin of 0.07 above 1/2",
        "Theorem 1, step 3",
        f"3/4 - 1/sqrt(17) - 1/2 = {margin:.4f}",
        "exp(-2 n 0.07^2)",
        margin >= 0.07,
        "The exponent should read 0.007: a constant a hundred times larger. Step 3 is not needed "
        "at all, see the last claim on the probability of a miss.",
        refuted=True,
    )


def _range_claim() -> Claim:
    size, prior = 10, 0.1
    largest = easy_offset_range(size, prior)
    return Claim(
        "EasyLLP's offset loss is at most k in absolute value",
        "Appendix D, proof of Lemma 1",
        f"k = {size}, p = {prior}: its largest value is {largest:g}; it approaches 2k - 1 as p "
        "approaches 0",
        f"{size}",
        largest <= size,
        "Changes the hidden constant only; our certificate uses the exact range.",
        refuted=True,
    )


def _slope_claim() -> Claim:
    size = 10
    means = np.linspace(0, 1, 10_001)
    largest = float(np.abs(np.diff(size * means**2) / np.diff(means)).max())  # at proportion 0
    return Claim(
        "The bag loss k (mean f - a)^2 is k-Lipschitz in mean f",
        "Appendix C, the class of losses",
        f"k = {size}, a = 0: its slope approaches {largest:.4g} at mean f = 1",
        f"{size}",
        largest <= size,
        "The class is 2k-Lipschitz, which changes the hidden constant only.",
        refuted=True,
    )


def _draw(rows: list[Row], grid: Options) -> Figure:
    figure, [axes] = new_figure()
    n = [row["n_bags"] for row in rows]
    add_line(axes, n, [row["deviation"] for row in rows], label="measured")
    axes.plot(n, [row["exact"] for row in rows], "k--", linewidth=0.8, label="sqrt(L / (nk))")
    axes.plot(n, [row["stated"] for row in rows], "k:", linewidth=0.8, label="1/(nk)")
    axes.set(xscale="log", yscale="log", xlabel="bags n", ylabel="|mean f - mean y|")
    axes.set_title(f"a hypothesis with E f = p, bags of {grid['bag_size']}", fontsize="medium")
    axes.legend(fontsize="small")
    return figure
