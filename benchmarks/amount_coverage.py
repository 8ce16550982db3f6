"""How often nominal 95 % intervals of MSE, R2, bias, slope and deviance cover the truth.

    python benchmarks/amount_coverage.py            # a minute; resumes where it stopped

Every data set is drawn from a known law. One row a law and metric goes to
``results/amounts/coverage.csv``, the page to ``coverage.md``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unbag import Bags
from unbag.evaluation.amounts import evaluate_amounts
from unbag.randomness import numpy_generator

FOLDER = Path(__file__).parent / "results" / "amounts"
FIELDS = ["law", "metric", "truth", "datasets", "given", "coverage", "mean"]
FIELDS += ["error_of_mean", "seed"]
Errors = Callable[[np.random.Generator, int], np.ndarray]
LOGNORMAL = np.exp(1.0), np.exp(2.0) - np.exp(1.0)  # mean squared and variance
# Errors of amounts, with mean zero and variance one.
ERRORS: dict[str, Errors] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "Student, 5 degrees": lambda rng, n: rng.standard_t(5, size=n) * np.sqrt(3 / 5),
    "mostly zero": lambda rng, n: (
        ((rng.random(n) < 0.1) * rng.exponential(size=n) - 0.1) / np.sqrt(0.19)
    ),
    "lognormal": lambda rng, n: (
        (np.exp(rng.normal(size=n)) - np.sqrt(LOGNORMAL[0])) / np.sqrt(LOGNORMAL[1])
    ),
}


@dataclass(frozen=True)
class Law:
    """Bags of amounts ``2 x + e``, predicted by ``1.8 x + 0.2``; or of events."""

    n_bags: int
    errors: str = "normal"
    sizes: str = "of 20"
    noise: float = 0.0
    weighted: bool = False
    events: bool = False

    @property
    def name(self) -> str:
        """In words."""
        kind = "events" if self.events else self.errors
        extra = [", weighted"] * self.weighted + [f", noise {self.noise:g}"] * (self.noise > 0)
        return f"{self.n_bags} bags {self.sizes}, {kind}{''.join(extra)}"

    def draw(self, rng: np.random.Generator, n_bags: int) -> tuple[np.ndarray, Bags]:
        """Predictions and bags."""
        sizes = np.full(n_bags, 20)
        if self.sizes == "of 2 to 60":
            sizes = rng.integers(2, 61, size=n_bags)
        x, weights = rng.normal(size=sizes.sum()), rng.uniform(0.2, 2.0, size=sizes.sum())
        if self.events:
            rates = np.exp(0.5 * x - 0.5)
            amounts, predictions = rng.poisson(weights * rates) / weights, 0.9 * rates
        else:
            amounts, predictions = 2 * x + ERRORS[self.errors](rng, len(x)), 1.8 * x + 0.2
        own = weights if self.weighted or self.events else np.ones(len(x))
        starts = np.cumsum(sizes) - sizes
        values = np.add.reduceat(own * amounts, starts) / np.add.reduceat(own, starts)
        values = values + np.sqrt(self.noise) * rng.normal(size=n_bags)
        bags = Bags.from_arrays(
            np.zeros(len(x)),
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            proportions=values,
            noise_variance=self.noise or None,
            weights=own if self.weighted or self.events else None,
            task="amount",
        )
        return predictions, bags

    def truths(self, rng: np.random.Generator) -> dict[str, float]:
        """Exact for amounts; for events, of a data set of 200,000 bags."""
        if not self.events:
            return {"mse": 1.08, "r2": 1 - 1.08 / 5, "bias": 0.2, "slope": 3.6 / 3.24}
        found = evaluate_amounts(*self.draw(rng, 200_000))
        return {name: found[name].value for name in found}


LAWS = [
    *(Law(n, errors) for n in (10, 30, 100) for errors in ERRORS),
    *(Law(n, sizes="of 2 to 60") for n in (10, 30, 100)),
    *(Law(n, weighted=True) for n in (30, 100)),
    *(Law(n, noise=noise) for n in (30, 100) for noise in (0.05, 1.0)),
    *(Law(n, events=True) for n in (10, 30, 100)),
]


def run_law(law: Law, *, datasets: int, seed: int) -> list[dict]:
    """Simulate one law and count."""
    rng = numpy_generator("amount coverage", seed, law.name)
    truths = law.truths(rng)
    drawn = [evaluate_amounts(*law.draw(rng, law.n_bags)) for _ in range(datasets)]
    rows = []
    for metric, truth in truths.items():
        found = [one[metric] for one in drawn]
        values = np.array([one.value for one in found])
        given = [one for one in found if one.has_interval]
        inside = np.mean([one.low <= truth <= one.high for one in given] or [np.nan])
        error = values.std() / np.sqrt(datasets)
        share = len(given) / datasets
        numbers = [f"{v:.4f}" for v in (truth, share, inside, values.mean(), error)]
        own = [law.name, metric, numbers[0], datasets, *numbers[1:], seed]
        rows.append(dict(zip(FIELDS, own, strict=True)))
    return rows


def _cell(row: dict) -> str:
    """Coverage in percent, and how often there is an interval if not always."""
    given, covered = float(row["given"]), 100 * float(row["coverage"])
    return f"{covered:.1f}" + (f" ({100 * given:.0f})" if given < 1 else "")


def page(path: Path) -> str:
    """Coverage by law and metric."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    datasets = int(rows[0]["datasets"])
    lines = ["# Coverage of nominal 95 % intervals of amounts", ""]
    lines += [
        f"`python benchmarks/amount_coverage.py`, seed {rows[0]['seed']}: {datasets} data sets a "
        f"law, Monte Carlo standard error {100 * np.sqrt(0.95 * 0.05 / datasets):.1f} %. Amounts "
        "are 2 x + e with e of mean zero and variance one, predictions 1.8 x + 0.2; events are "
        "Poisson with random exposures. In brackets: the percentage of data sets with an interval, "
        "if not all have one.",
        "",
        f"| law | {' | '.join(metrics)} |",
        "|---" * (1 + len(metrics)) + "|",
    ]
    for law in dict.fromkeys(row["law"] for row in rows):
        own = {r["metric"]: _cell(r) for r in rows if r["law"] == law}
        lines.append(f"| {law} | {' | '.join(own.get(m, '') for m in metrics)} |")
    gaps = [abs(float(r["mean"]) - float(r["truth"])) / float(r["error_of_mean"]) for r in rows]
    mse = [gap for gap, row in zip(gaps, rows, strict=True) if row["metric"] in ("mse", "bias")]
    lines += ["", f"Mean estimates of MSE and bias are at most {max(mse):.1f} standard errors off "]
    lines[-1] += f"the truth, in {len(mse)} cases."
    return "\n".join([*lines, ""])


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path, done = options.folder / "coverage.csv", set()
    if path.exists():
        with path.open() as file:
            done = {row["law"] for row in csv.DictReader(file)}
    for law in LAWS:
        if law.name in done:
            continue
        rows = run_law(law, datasets=options.datasets, seed=options.seed)
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerows(rows)
        print(law.name, {row["metric"]: row["coverage"] for row in rows}, flush=True)
    (options.folder / "coverage.md").write_text(page(path))


if __name__ == "__main__":
    main()
