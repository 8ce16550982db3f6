"""EPRM: fast when the truth is in the class, exponentially slow when it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unbag.randomness import numpy_generator
from unbag_paper.claims.figure_style import add_line, new_figure
from unbag_paper.claims.results import Claim, ExperimentResult, Options, Progress
from unbag_paper.claims.simulation import learned_excess
from unbag_paper.claims.statistics import Slope, fit_power, mean_and_error
from unbag_paper.exact import EPRM, CountDebiasedSquare, symmetrise
from unbag_paper.theory import (
    FiniteProblem,
    one_point_problem,
    pure_bag_probability,
    shattered_problem,
)

__all__ = ["eprm_blindness", "eprm_rate"]

Row = dict[str, Any]


def symmetric_problem(dimension: int, rare_mass: float) -> FiniteProblem:
    """The realizable shattered problem with one minus every hypothesis added."""
    plain = shattered_problem(dimension, rare_mass=rare_mass)
    return FiniteProblem(plain.name, plain.mass, plain.positive_rate, symmetrise(plain.hypotheses))


def eprm_rate(grid: Options, progress: Progress) -> ExperimentResult:
    """Worst error of EPRM over realizable distributions, against bags and bag size."""
    rows = [
        worst_realizable_error(grid, bag_size, n_bags, progress)
        for bag_size in grid["bag_sizes"]
        for n_bags in grid["n_bags"]
    ]
    slopes = {size: _slope_in_bags(rows, size) for size in grid["bag_sizes"]}
    worst = max(slopes.values(), key=lambda slope: abs(slope.value + 1))
    in_size = _slope_in_size(rows, grid)
    return ExperimentResult(
        "eprm_rate",
        [
            Claim(
                "EPRM has a fast rate under realizability",
                "Theorem 1",
                f"slope in n furthest from -1: {worst} (k = {grid['bag_sizes']})",
                "error ~ 1/n",
                all(slope.near(-1, curvature=grid["curvature"]) for slope in slopes.values()),
            ),
            Claim(
                "EPRM's bags grow at most like log k",
                "Theorem 1",
                f"n * error ~ k^({in_size})",
                "n * error = O(log k)",
                in_size.value + 3 * in_size.error < 0.25,
                "The bound holds and is loose: in its own range eps < 1/(4k) the bags needed fall "
                "like 1/k, as keeping q = 1/2 - (1 - 2 eps)^k / 2 in its proof shows.",
            ),
        ],
        rows,
        _draw_rate(rows, grid),
    )


def worst_realizable_error(grid: Options, bag_size: int, n_bags: int, progress: Progress) -> Row:
    """Largest mean error of the worst tied minimiser over a range of rare masses."""
    found = []
    for multiple in grid["rare_multiples"]:
        rare = min(1.0, multiple * grid["dimension"] / (n_bags * bag_size))
        name = ("theory", grid["seed"], "eprm rate", bag_size, n_bags, multiple)
        excess = learned_excess(
            symmetric_problem(grid["dimension"], rare),
            {"eprm": EPRM()},
            n_trials=grid["n_trials"],
            n_bags=n_bags,
            bag_size=bag_size,
            generator=numpy_generator(*name),
            ties="worst",
        )["eprm"]
        found.append(mean_and_error(excess))
        progress()
    error, deviation = max(found)
    return {"bag_size": bag_size, "n_bags": n_bags, "error": error, "standard_error": deviation}


def _slope_in_bags(rows: list[Row], bag_size: int) -> Slope:
    kept = [row for row in rows if row["bag_size"] == bag_size]
    return fit_power(*_columns(kept, "n_bags", "error", "standard_error"))


def _slope_in_size(rows: list[Row], grid: Options) -> Slope:
    kept = [row for row in rows if row["n_bags"] == max(grid["n_bags"])]
    return fit_power(*_columns(kept, "bag_size", "error", "standard_error"))


def _columns(rows: list[Row], *names: str) -> list[np.ndarray]:
    return [np.array([row[name] for row in rows], dtype=float) for name in names]


def _draw_rate(rows: list[Row], grid: Options) -> Figure:
    figure, [left, right] = new_figure(2)
    for size in grid["bag_sizes"]:
        kept = [row for row in rows if row["bag_size"] == size]
        n, error, deviation = _columns(kept, "n_bags", "error", "standard_error")
        add_line(left, n, error, deviation, label=f"k = {size}")
    left.plot(n, error[0] * n[0] / n, "k--", linewidth=0.8, label="slope -1")
    left.set(xscale="log", yscale="log", xlabel="bags n", ylabel="worst error of EPRM")
    kept = [row for row in rows if row["n_bags"] == max(grid["n_bags"])]
    size, error, deviation = _columns(kept, "bag_size", "error", "standard_error")
    scale = max(grid["n_bags"])
    add_line(right, size, scale * error, scale * deviation, label="measured")
    right.plot(size, scale * error[0] * np.log(size) / np.log(size[0]), "--", label="log k")
    right.plot(size, scale * error[0] * size[0] / size, "--", label="1/k")
    right.set(xscale="log", yscale="log", xlabel="bag size k", ylabel="n times error")
    for axes in (left, right):
        axes.legend(fontsize="small")
    return figure


def eprm_blindness(grid: Options, progress: Progress) -> ExperimentResult:
    """Bags until the first pure bag, before which EPRM cannot tell its two hypotheses apart."""
    rows = [_first_pure_bag(grid, size, progress) for size in grid["bag_sizes"]]
    sizes, waits, errors = _columns(rows, "bag_size", "mean_wait", "standard_error")
    slope = fit_power(np.exp2(sizes), waits, errors)
    exact = np.array([row["expected_wait"] for row in rows])
    expected = fit_power(np.exp2(sizes), exact, errors * exact / waits).value
    off = max(abs(row["mean_wait"] - row["expected_wait"]) / row["standard_error"] for row in rows)
    rescued = min(row["debiased_correct"] for row in rows)
    return ExperimentResult(
        "eprm_blindness",
        [
            Claim(
                "EPRM needs exponentially many bags on one noisy point",
                "Section 2.2, first example",
                f"bags until a pure one ~ 2^({slope} k); largest z against 1/P(pure): {off:.1f}",
                f"Omega(2^k) for small eps; 1/P(pure) ~ 2^({expected:.3f} k) on this range",
                slope.near(expected, curvature=0.005) and off < 4,
                "The base is 1/(1/2 + eps): 2^k only as eps tends to 0.",
            ),
            Claim(
                "The debiased loss learns where EPRM is blind",
                "Section 3",
                f"P(correct) with {grid['rescue_bags']} bags: at least {rescued:.3f} for every k",
                "consistent for every k",
                rescued > 0.9,
            ),
        ],
        rows,
        _draw_blindness(rows, grid),
    )


def _first_pure_bag(grid: Options, bag_size: int, progress: Progress) -> Row:
    """Mean wait for a pure bag, and how often the debiased loss is right with few bags."""
    chance = pure_bag_probability(grid["margin"], bag_size)
    rng = numpy_generator("theory", grid["seed"], "eprm blindness", bag_size)
    length = int(40 / chance)
    pure = sum(_pure_bags(rng, bag_size, grid["margin"], length) for _ in range(grid["n_blocks"]))
    wait = length * grid["n_blocks"] / pure
    excess = learned_excess(
        one_point_problem(grid["margin"]),
        {"debiased": CountDebiasedSquare()},
        n_trials=grid["n_trials"],
        n_bags=grid["rescue_bags"],
        bag_size=bag_size,
        generator=rng,
    )["debiased"]
    progress()
    return {
        "bag_size": bag_size,
        "mean_wait": wait,
        "standard_error": wait / np.sqrt(pure),
        "expected_wait": 1 / chance,
        "debiased_correct": float(np.mean(excess == 0)),
    }


def _pure_bags(rng: np.random.Generator, bag_size: int, margin: float, length: int) -> int:
    counts = rng.binomial(bag_size, 0.5 + margin, size=length)
    return int(np.sum((counts == 0) | (counts == bag_size)))


def _draw_blindness(rows: list[Row], grid: Options) -> Figure:
    figure, [axes] = new_figure()
    sizes, waits, errors, expected = _columns(
        rows, "bag_size", "mean_wait", "standard_error", "expected_wait"
    )
    add_line(axes, sizes, waits, errors, label="until the first pure bag")
    axes.plot(sizes, expected, "k--", linewidth=0.8, label="1 / P(pure)")
    axes.axhline(grid["rescue_bags"], color="#3a7d44", label="bags given to the debiased loss")
    axes.set(yscale="log", xlabel="bag size k", ylabel="bags", title="EPRM on one noisy point")
    axes.legend(fontsize="small")
    return figure
