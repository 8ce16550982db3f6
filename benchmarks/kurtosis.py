"""What it costs an interval not to know how heavy the tails of the noise are.

    python benchmarks/kurtosis.py --seed 0

Laplace noise whose variance in a bag's count is that of a private count. The table of coverages of
nominal 95 % intervals of the error is written to ``results/coverage/kurtosis.md``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from populations import make_world

from unbag.evaluation.intervals import ResidualMoments
from unbag.evaluation.risk import risk_from_residuals
from unbag.randomness import numpy_generator

PAGE = Path(__file__).parents[1] / "results" / "coverage" / "kurtosis.md"
LAPLACE_KURTOSIS = 3.0
ERROR = 0.1
CELLS = [(size, n_bags) for size in (5, 50) for n_bags in (50, 200, 1000)]
VARIANCE = 2.0  # of Laplace noise in a count, at epsilon = 1


def covered(cell: tuple[int, int], *, datasets: int, seed: int) -> np.ndarray:
    """Share of intervals that hold the error: with the kurtosis given, and with it estimated."""
    bag_size, n_bags = cell
    world, rng = make_world(ERROR), numpy_generator("kurtosis", seed, cell)
    truth = sum(world.errors()[:2])
    hits = np.zeros((datasets, 2), dtype=bool)
    for number in range(datasets):
        table = world.draw(rng, np.full(n_bags, bag_size), noise=VARIANCE)
        residuals = (table.bag_mean(table.hard) - table.proportions)[:, None]
        for column, kurtosis in enumerate((LAPLACE_KURTOSIS, np.nan)):
            law = ResidualMoments(noise_kurtosis=kurtosis)
            e = risk_from_residuals(residuals, table.sizes, table.noise, law=law)
            hits[number, column] = e.low <= truth <= e.high
    return hits.mean(axis=0)


def table_of(*, datasets: int, seed: int) -> str:
    """Both coverages for every cell."""
    lines = ["# Intervals under Laplace noise, its kurtosis given or estimated", ""]
    lines += ["| bag_size | n_bags | given | estimated |", "|---" * 4 + "|"]
    for cell in CELLS:
        given, estimated = 100 * covered(cell, datasets=datasets, seed=seed)
        lines.append(f"| {cell[0]} | {cell[1]} | {given:.1f} | {estimated:.1f} |")
    note = f"Error {100 * ERROR:.0f} %, noise of variance {VARIANCE:.0f} in every count"
    return "\n".join([*lines, "", f"{note}; {datasets} data sets a cell, seed {seed}.", ""])


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    PAGE.write_text(table_of(datasets=options.datasets, seed=options.seed))


if __name__ == "__main__":
    main()
