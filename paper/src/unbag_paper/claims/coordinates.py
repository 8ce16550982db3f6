"""Lower bounds: the coordinate class, realizable and agnostic, and the class of two constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import binom

from unbag.randomness import numpy_generator
from unbag_paper.claims.figure_style import add_line, new_figure
from unbag_paper.claims.results import Claim, ExperimentResult, Options, Progress
from unbag_paper.claims.simulation import batches, learned_excess, tied_mask
from unbag_paper.claims.statistics import Slope, fit_power, half_point
from unbag_paper.exact import CountDebiasedSquare, CountRule, EasyLLP, bag_loss
from unbag_paper.theory import (
    CoordinateProblem,
    coordinate_information,
    coordinate_information_bound,
    fano_sample_size,
    one_point_problem,
)

__all__ = ["agnostic_coordinates", "realizable_coordinates", "two_constants"]

Row = dict[str, Any]
Array = NDArray[Any]

# With a Poisson number of wrong survivors of this mean, one survivor drawn at random is right with
# probability 1/2: the root of (1 - exp(-m)) / m = 1/2.
RIVALS = 1.5936


def realizable_coordinates(grid: Options, progress: Progress) -> ExperimentResult:
    """Bags until EPRM finds the labels' coordinate in half of the trials, against d / log k."""
    rows = [
        _realizable_row(grid, dimension, size, progress)
        for dimension in grid["dimensions"]
        for size in grid["bag_sizes"]
    ]
    large = [row for row in rows if row["bag_size"] >= 4]
    ratios = [row["needed"] / row["shape"] for row in large]
    above = min(row["needed"] / row["fano"] for row in rows)
    by_theory = [row["needed"] / row["predicted"] for row in rows]
    claims = [
        Claim(
            "Every rule needs Omega(d / log k) bags on the coordinate class, realizable",
            "Theorem 4",
            f"EPRM's bags / Fano's bound at least {above:.2f}",
            "at least 1",
            above >= 1,
        ),
        Claim(
            "d / log k is the right dependence on k there",
            "Theorem 4",
            f"EPRM's bags / (d / log k) from {min(ratios):.2f} to {max(ratios):.2f} for k = "
            f"{[row['bag_size'] for row in large if row['dimension'] == grid['dimensions'][0]]}",
            "bounded above and below",
            max(ratios) / min(ratios) < 2.5,
        ),
        Claim(
            "A wrong coordinate survives a bag when two binomials agree",
            "Appendix E",
            f"bags / (ln(2^d / 1.59) / -ln P(agree)) from {min(by_theory):.2f} to "
            f"{max(by_theory):.2f}",
            "near 1",
            min(by_theory) > 0.85 and max(by_theory) < 1.15,
        ),
    ]
    return ExperimentResult("realizable_coordinates", claims, rows, _draw_realizable(rows, grid))


def _realizable_row(grid: Options, dimension: int, bag_size: int, progress: Progress) -> Row:
    problem = CoordinateProblem(dimension)
    rng = numpy_generator("theory", grid["seed"], "coordinates", dimension, bag_size)
    chances = _chance_consistent(problem, grid, bag_size, rng)
    progress()
    agree = agreement_probability(bag_size)
    return {
        "dimension": dimension,
        "bag_size": bag_size,
        "needed": half_point(np.arange(1, grid["most_bags"] + 1), chances),
        "fano": fano_sample_size(bag_size, dimension=dimension),
        "shape": dimension / np.log(max(bag_size, 2)),
        "predicted": (dimension * np.log(2) - np.log(RIVALS)) / -np.log(agree),
    }


def agreement_probability(bag_size: int) -> float:
    """Probability that two independent Bin(k, 1/2) variables are equal.

    Examples
    --------
    >>> round(agreement_probability(1), 12)
    0.5
    """
    return float(np.sum(binom.pmf(np.arange(bag_size + 1), bag_size, 0.5) ** 2))


def _chance_consistent(
    problem: CoordinateProblem, grid: Options, bag_size: int, rng: np.random.Generator
) -> Array:
    """Chance that a consistent coordinate, drawn at random, is the right one, after each bag."""
    chances = []
    for counts in batches(problem, grid["n_trials"], grid["most_bags"], bag_size, rng):
        alive = np.logical_and.accumulate(counts.predicted == counts.positives, axis=2)
        chances.append(1 / alive.sum(axis=1))
    return np.asarray(np.concatenate(chances).mean(axis=0))


def _draw_realizable(rows: list[Row], grid: Options) -> Figure:
    figure, [axes] = new_figure()
    for dimension in grid["dimensions"]:
        kept = [row for row in rows if row["dimension"] == dimension]
        sizes = [row["bag_size"] for row in kept]
        add_line(axes, sizes, [row["needed"] for row in kept], label=f"EPRM, d = {dimension}")
    axes.plot(sizes, [row["shape"] for row in kept], "k--", linewidth=0.8, label="d / log k")
    axes.plot(sizes, [row["fano"] for row in kept], "k:", linewidth=0.8, label="Fano")
    axes.set(xscale="log", yscale="log", xlabel="bag size k", ylabel="bags for half a chance")
    axes.set_title("coordinate class, realizable")
    axes.legend(fontsize="small")
    return figure


def agnostic_coordinates(grid: Options, progress: Progress) -> ExperimentResult:
    """Bags until the unbiased rules find the coordinate through noise."""
    rows = [_agnostic_row(grid, size, progress) for size in grid["bag_sizes"]]
    slopes = {name: _slope(rows, name) for name in ("debiased", "easy")}
    above = min(min(row["debiased"], row["easy"]) / row["fano"] for row in rows)
    information = _slope(rows, "information")
    paper = _slope(rows, "paper_information")
    claims = [
        Claim(
            "Every rule needs Omega(d / (sqrt(k) eps^2)) bags, agnostic",
            "Theorem 4",
            f"bags / Fano's bound with the exact information at least {above:.2f}",
            "at least 1",
            above >= 1,
        ),
        Claim(
            "The paper's divergence bound grows like sqrt(k), the divergence itself does not",
            "Appendix E",
            f"paper's bound ~ k^({paper.value:.3f}), exact ~ k^({information.value:.4f})",
            "bounded by O(eps^2 sqrt(k log k))",
            abs(information.value) < 0.02 < paper.value,
            "So the lower bound is really of order d / eps^2, whatever the bag size: stronger than "
            "stated. The paper's last display also carries a sqrt(log k) that its theorem drops; "
            "Cauchy-Schwarz removes it.",
        ),
        Claim(
            "Bags needed do not fall like 1/sqrt(k)",
            "Theorem 4 (is it tight?)",
            "; ".join(f"{name} ~ k^({slope})" for name, slope in slopes.items()),
            "lower bound only: k^-1/2; with the exact information: k^0",
            all(slope.value > -0.25 for slope in slopes.values()),
        ),
    ]
    return ExperimentResult("agnostic_coordinates", claims, rows, _draw_agnostic(rows, grid))


def _agnostic_row(grid: Options, bag_size: int, progress: Progress) -> Row:
    problem = CoordinateProblem(grid["dimension"], margin=grid["margin"])
    rng = numpy_generator("theory", grid["seed"], "agnostic", bag_size)
    rules: dict[str, CountRule] = {"debiased": CountDebiasedSquare(), "easy": EasyLLP(prior=0.5)}
    chances = _chance_along(problem, rules, grid, bag_size, rng)
    progress()
    return {
        "bag_size": bag_size,
        **{name: half_point(grid["n_bags"], chance) for name, chance in chances.items()},
        "fano": fano_sample_size(bag_size, dimension=grid["dimension"], margin=grid["margin"]),
        "information": coordinate_information(bag_size, grid["margin"]),
        "paper_information": coordinate_information_bound(bag_size, grid["margin"]),
    }


def _chance_along(
    problem: CoordinateProblem,
    rules: dict[str, CountRule],
    grid: Options,
    bag_size: int,
    rng: np.random.Generator,
) -> dict[str, Array]:
    """Chance of the right coordinate after each number of bags, prefixes of the same data."""
    found: dict[str, list[list[Array]]] = {name: [] for name in rules}
    for counts in batches(problem, grid["n_trials"], max(grid["n_bags"]), bag_size, rng):
        for name, rule in rules.items():
            found[name].append(
                [
                    _right(rule, counts.predicted, counts.positives, bag_size, n)
                    for n in grid["n_bags"]
                ]
            )
    return {name: np.concatenate(parts, axis=1).mean(axis=1) for name, parts in found.items()}


def _right(
    rule: CountRule, predicted: Array, positives: Array, bag_size: int, n_bags: int
) -> Array:
    values = bag_loss(
        rule,
        predicted[..., :n_bags],
        sizes=np.full(n_bags, bag_size),
        positives=positives[..., :n_bags],
    )
    tied = tied_mask(values)
    return np.asarray(tied[:, 0] / tied.sum(axis=1))


def _slope(rows: list[Row], name: str) -> Slope:
    values = np.array([row[name] for row in rows])
    # A crossing of the 1/2 level read off a coarse grid is good to about 5 %.
    return fit_power([row["bag_size"] for row in rows], values, 0.05 * values)


def _draw_agnostic(rows: list[Row], grid: Options) -> Figure:
    figure, [axes] = new_figure()
    sizes = np.array([row["bag_size"] for row in rows])
    for name in ("debiased", "easy"):
        add_line(axes, sizes, [row[name] for row in rows], label=name)
    axes.plot(sizes, [row["fano"] for row in rows], "k:", label="Fano, exact information")
    first = rows[0]["fano"]
    axes.plot(sizes, first * np.sqrt(sizes[0] / sizes), "k--", label="1/sqrt(k)", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="bag size k", ylabel="bags for half a chance")
    axes.set_title(f"coordinate class, d = {grid['dimension']}, eps = {grid['margin']}")
    axes.legend(fontsize="small")
    return figure


def two_constants(grid: Options, progress: Progress) -> ExperimentResult:
    """The class of the two constants, where n bags are worth nk labels."""
    rows = [_constants_row(grid, size, progress) for size in grid["bag_sizes"]]
    slope = _slope(rows, "needed")
    return ExperimentResult(
        "two_constants",
        [
            Claim(
                "The trivial 1/k in the lower bound is attained by two constants",
                "Section 5",
                f"bags of the debiased loss ~ k^({slope})",
                "k^-1",
                slope.near(-1, curvature=grid["curvature"]),
            )
        ],
        rows,
        _draw_constants(rows),
    )


def _constants_row(grid: Options, bag_size: int, progress: Progress) -> Row:
    numbers = [n for n in grid["n_bags"] if n >= 2]
    chances = []
    for n_bags in numbers:
        excess = learned_excess(
            one_point_problem(grid["margin"]),
            {"debiased": CountDebiasedSquare()},
            n_trials=grid["n_trials"],
            n_bags=n_bags,
            bag_size=bag_size,
            generator=numpy_generator("theory", grid["seed"], "constants", bag_size, n_bags),
        )["debiased"]
        chances.append(1 - float(excess.mean()) / (2 * grid["margin"]))
    progress()
    return {"bag_size": bag_size, "needed": half_point(numbers, chances, level=grid["level"])}


def _draw_constants(rows: list[Row]) -> Figure:
    figure, [axes] = new_figure()
    sizes = np.array([row["bag_size"] for row in rows], dtype=float)
    needed = np.array([row["needed"] for row in rows])
    add_line(axes, sizes, needed, label="debiased loss")
    axes.plot(sizes, needed[0] * sizes[0] / sizes, "k--", linewidth=0.8, label="1/k")
    axes.set(xscale="log", yscale="log", xlabel="bag size k", ylabel="bags needed")
    axes.set_title("two constants, agnostic")
    axes.legend(fontsize="small")
    return figure
