"""What optimal weights gain over the pairwise rule's on unequal bags.

    python benchmarks/weighting.py --seed 0

The table is written to ``results/coverage/weighting.md``.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from populations import unequal_sizes

from unbag.evaluation.intervals import ResidualMoments
from unbag.evaluation.weighting import fit_variance
from unbag.randomness import numpy_generator

PAGE = Path(__file__).parent / "results" / "coverage" / "weighting.md"


def weighting_table(*, datasets: int, seed: int) -> str:
    """Variance of the estimated error with the pairwise rule's weights, over that with ours."""
    lines = ["# What optimal weights gain on unequal bags", ""]
    lines += ["| bag_size | n_bags | noise | error_percent | variance ratio | bias |"]
    lines += ["|---" * 6 + "|"]
    for bag_size, noise, percent in product((5, 50, 500), (0.0, 0.5), (2, 10, 30)):
        ratio, bias = _gain(bag_size, 200, noise, percent / 100, datasets, seed)
        cells = [bag_size, 200, noise, percent, f"{ratio:.2f}", f"{bias:+.1f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    note = "Bias of the optimally weighted estimate in standard errors of its mean over"
    return "\n".join([*lines, "", f"{note} {datasets} data sets; seed {seed}.", ""])


def _gain(
    bag_size: int, n_bags: int, noise: float, error: float, datasets: int, seed: int
) -> tuple[float, float]:
    rng = numpy_generator("weighting", seed, bag_size, noise, error)
    sizes = unequal_sizes(bag_size, n_bags)
    variance = noise / sizes.astype(float) ** 2
    law = ResidualMoments()
    values = np.empty((datasets, 2))
    for number in range(datasets):
        counts = rng.multinomial(sizes, [0.55 * error, 0.45 * error, 1 - error])
        residuals = (counts[:, 0] - counts[:, 1]) / sizes
        residuals = residuals + rng.laplace(size=n_bags) * np.sqrt(variance / 2)
        values[number] = [
            fit_variance(residuals[:, None], sizes.astype(float), variance, law=law, weights=w).risk
            for w in ("size", "optimal")
        ]
    ratio = values[:, 0].var() / values[:, 1].var()
    return ratio, (values[:, 1].mean() - error) / values[:, 1].std() * datasets**0.5


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    PAGE.write_text(weighting_table(datasets=options.datasets, seed=options.seed))


if __name__ == "__main__":
    main()
