"""One interval for every metric, from the bags themselves, beside the derived ones.

    python benchmarks/generic_intervals.py          # resumes where it stopped

The jackknife leaves out one bag at a time. Its standard error, times the quantile of Student's law
with one degree of freedom less than bags, makes the same interval for every smooth metric: fifty
lines instead of a derivation each. Rows go to ``results/coverage/generic.csv``, the page to
``generic.md``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from coverage import estimates, truths
from coverage_laws import LAWS
from populations import World
from scipy import stats

from unbag.evaluation.estimate import Estimate
from unbag.evaluation.positives import ScoreTable
from unbag.randomness import numpy_generator

FOLDER = Path(__file__).parent / "results" / "coverage"
CHOSEN = (
    "8 bags of 50, errors 10 %",
    "16 bags of 50, errors 10 %",
    "30 bags of 50, three tied scores",
    "60 bags of 25, rare positives",
    "50 bags of 50, equal, noise 0.0, errors 2 %",
)
METRICS = ("error", "brier", "log_loss", "auc", "average_precision", "precision", "recall", "f1")
CONFIDENCE = 0.95


def without(table: ScoreTable, bag: int) -> ScoreTable:
    """The table without one bag."""
    kept = np.arange(len(table.sizes)) != bag
    sizes, means = table.sizes[kept], np.asarray(table.membership)[kept]
    shares = sizes @ means / sizes.sum()
    used = shares > 0
    return ScoreTable(
        table.scores[used],
        shares[used],
        means[:, used],
        table.proportions[kept],
        sizes,
        table.noise[kept],
    )


def jackknife(world: World, table: ScoreTable, found: dict[str, Estimate]) -> dict[str, tuple]:
    """The interval of every metric; nothing where a metric cannot be had without some bag."""
    n_bags = len(table.sizes)
    left_out = [estimates(world, without(table, bag)) for bag in range(n_bags)]
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, n_bags - 1)
    intervals = {}
    for name in METRICS:
        values = np.array([one[name].value for one in left_out])
        error = quantile * np.sqrt((n_bags - 1) * values.var())
        value, (low, high) = found[name].value, (found[name].lowest, found[name].highest)
        intervals[name] = tuple(np.clip([value - error, value + error], low, high))
    return intervals


def run_law(name: str, *, datasets: int, seed: int) -> list[dict]:
    """Coverage and median length of both kinds of interval."""
    law, rng = LAWS[name], numpy_generator("generic", seed, name)
    truth, rows = truths(law.world), []
    with np.errstate(all="ignore"):
        for _ in range(datasets):
            table = law.world.draw(rng, law.sizes, noise=law.noise)
            found = estimates(law.world, table)
            for metric, generic in jackknife(law.world, table, found).items():
                own = found[metric]
                derived = (own.low, own.high) if own.has_interval else (np.nan, np.nan)
                for kind, (low, high) in (("derived", derived), ("jackknife", generic)):
                    held = np.nan if np.isnan(low) else float(low <= truth[metric] <= high)
                    rows.append(
                        {"metric": metric, "kind": kind, "held": held, "length": high - low}
                    )
    means = pd.DataFrame(rows).groupby(["metric", "kind"], sort=False)
    table = means.agg(coverage=("held", "mean"), length=("length", "median")).round(4)
    return table.reset_index().assign(law=name, datasets=datasets, seed=seed).to_dict("records")


def page(rows: pd.DataFrame) -> str:
    """Coverage in percent, and how long the intervals are."""
    first = rows.iloc[0]
    lines = ["# One interval for every metric, beside the derived ones", ""]
    lines += [
        f"`python benchmarks/generic_intervals.py`: {first['datasets']} data sets a law, seed "
        f"{first['seed']}; coverage of nominal 95 % intervals in %, with a Monte Carlo standard "
        f"error of about {100 * np.sqrt(0.05 * 0.95 / first['datasets']):.1f}, and the jackknife's "
        "median length where the derived one is 1. No number: no interval, with a reason.",
        "",
        "| law | metric | derived | jackknife | length |",
        "|---|---|---|---|---|",
    ]
    for (law, metric), own in rows.groupby(["law", "metric"], sort=False):
        by_kind = own.set_index("kind")
        coverage = [by_kind.loc[kind, "coverage"] for kind in ("derived", "jackknife")]
        cells = ["-" if np.isnan(share) else f"{100 * share:.1f}" for share in coverage]
        ratio = by_kind.loc["jackknife", "length"] / by_kind.loc["derived", "length"]
        cells.append("-" if not np.isfinite(ratio) else f"{ratio:.2f}")
        lines.append(f"| {law} | {metric} | {' | '.join(cells)} |")
    below = (rows["coverage"] < 0.92).groupby(rows["kind"]).sum()
    given = rows["coverage"].notna().groupby(rows["kind"]).sum()
    lines += [
        "",
        f"Below 92 %: derived {below['derived']} of {given['derived']}, jackknife "
        f"{below['jackknife']} of {given['jackknife']}.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    path = options.folder / "generic.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    for name in CHOSEN:
        if name not in {row["law"] for row in rows}:
            rows += run_law(name, datasets=options.datasets, seed=options.seed)
            pd.DataFrame(rows).to_csv(path, index=False)
            print(name, flush=True)
    path.with_suffix(".md").write_text(page(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
