"""How often nominal 95 % intervals from bags cover the truth, and how wide they are.

    python benchmarks/coverage.py --seed 0                  # an hour; resumes where it was stopped
    python benchmarks/coverage.py --datasets 200 --only 5   # a glance, at bags of 5
    python benchmarks/coverage.py --again --datasets 10000 --seed 1   # where chance may be to blame

One row per cell and metric goes to ``results/coverage/coverage.csv`` as soon as the cell is done;
the summary is written to ``results/coverage/coverage.md``. Cells that are run again, because they
were outside by no more than chance, go to ``again.csv`` and ``again.md``. Every simulated data set
is drawn from a known population (`unbag.evaluation.simulation`), whose metrics are computed by
scikit-learn.
"""

from __future__ import annotations

import argparse
import csv
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from sklearn import metrics

from unbag.evaluation.calibration import calibration_error
from unbag.evaluation.confusion import (
    DECISION_METRICS,
    decision_intervals,
    estimate_errors,
    no_interval,
)
from unbag.evaluation.curves import SCORE_METRICS, Gradient
from unbag.evaluation.evaluate import score_metric
from unbag.evaluation.functionals import ScoreTable, fit_positives
from unbag.evaluation.intervals import ResidualLaw
from unbag.evaluation.residual_laws import binary_law, score_law
from unbag.evaluation.risk import risk_from_residuals
from unbag.evaluation.simulation import World, make_world, unequal_sizes
from unbag.randomness import numpy_generator

FOLDER = Path(__file__).parents[1] / "results" / "coverage"
CELLS = list(product((5, 50, 500), (50, 200, 1000), ("equal", "unequal"), (0.0, 0.5), (2, 10, 30)))
# The project's first simulation: as precise as 12,000 labels.
CELLS.insert(0, (100, 600, "equal", 0.0, 2))
KEYS = ["bag_size", "n_bags", "sizes", "noise", "error_percent"]
FIELDS = [*KEYS, "metric", "truth", "coverage", "missed_below", "missed_above", "width"]
FIELDS += ["deviation", "equivalent_labels", "datasets", "seed"]
ROC_CUT = 0.8
N_BINS = 5
LAPLACE_KURTOSIS = 3.0
CHANCE = "within two standard errors of the range's end"


def truths(world: World) -> dict[str, float]:
    """Metrics of the population."""
    labels, scores, weights = world.labelled()
    middle = np.cumsum(world.shares) - world.shares / 2
    gaps = np.bincount((middle * N_BINS).astype(int), world.shares * (world.chances - world.scores))
    masses, above, inside = world.shares * world.chances, world.scores > ROC_CUT, _middle(world)
    found = {name: f(*world.errors()) for name, f in DECISION_METRICS.items()}
    return found | {
        "error": sum(world.errors()[:2]),
        "brier": weights @ (scores - labels) ** 2,
        "log_loss": metrics.log_loss(labels, scores, sample_weight=weights),
        "auc": metrics.roc_auc_score(labels, scores, sample_weight=weights),
        "average_precision": metrics.average_precision_score(labels, scores, sample_weight=weights),
        "calibration_error": np.abs(gaps).sum(),
        "calibration_point": masses[inside].sum() / world.shares[inside].sum(),
        "roc_point": masses[above].sum() / masses.sum(),
    }


def _middle(world: World) -> np.ndarray:
    """Which scores lie in the middle bin."""
    middle = np.cumsum(world.shares) - world.shares / 2
    return (middle * N_BINS).astype(int) == N_BINS // 2


def estimates(world: World, table: ScoreTable) -> dict[str, tuple[float, float, float]]:
    """Value and interval of every metric from one data set."""
    kurtosis = LAPLACE_KURTOSIS if table.noise.any() else 0.0
    errors = estimate_errors(table, noise_kurtosis=kurtosis)
    intervals = decision_intervals(errors)
    found = {name: (e.value, e.low, e.high) for name, e in intervals.items()}
    found |= _risks(table, kurtosis)
    positives = fit_positives(table)
    gradients = {name: f(positives) for name, f in SCORE_METRICS.items()}
    gradients |= _points(world, positives)
    reason = no_interval(errors).get("true_positives", "")
    for name, gradient in gradients.items():
        why = reason if name == "average_precision" else ""
        e = score_metric(gradient, positives, noise_kurtosis=kurtosis, reason=why)
        found[name] = e.value, e.low, e.high
    e = calibration_error(positives, n_bins=N_BINS)
    return found | {"calibration_error": (e.value, e.low, e.high)}


def _risks(table: ScoreTable, kurtosis: float) -> dict[str, tuple[float, float, float]]:
    found = {}
    score = score_law(table.scores[:, None], "binary", shares=table.shares)
    for name, values, *laws in [
        ("error", table.hard, ResidualLaw(), ResidualLaw()),
        ("brier", table.scores, score, binary_law(fit_positives(table))),
    ]:
        residuals = (table.bag_mean(values) - table.proportions)[:, None]
        law, interval_law = (replace(law, noise_kurtosis=kurtosis) for law in laws)
        e = risk_from_residuals(
            residuals, table.sizes, table.noise, law=law, interval_law=interval_law
        )
        found[name] = e.value, e.low, e.high
    return found


def _points(world: World, positives) -> dict[str, Gradient]:
    """One point of the ROC and one of the calibration curve."""
    table, prior = positives.table, positives.prior
    above = (table.scores > ROC_CUT).astype(float)
    rate = positives.masses @ above / prior
    inside = np.isin(table.scores, world.scores[_middle(world)]).astype(float)
    share = table.average(inside)
    chance = positives.masses @ inside / share
    return {
        "roc_point": Gradient(rate, (above - rate) / prior, 0 * above),
        "calibration_point": Gradient(chance, inside / share, -chance * inside / share),
    }


def run_cell(cell: tuple, *, datasets: int, seed: int) -> list[dict]:
    """Simulate one cell and count."""
    bag_size, n_bags, sizes_kind, noise, percent = cell
    world, rng = make_world(percent / 100), numpy_generator("coverage", seed, cell)
    equal = np.full(n_bags, bag_size)
    sizes = equal if sizes_kind == "equal" else unequal_sizes(bag_size, n_bags)
    truth = truths(world)
    drawn = [estimates(world, world.draw(rng, sizes, noise=noise)) for _ in range(datasets)]
    keys = dict(zip(KEYS, cell, strict=True)) | {"datasets": datasets, "seed": seed}
    found = {name: np.array([ends[name] for ends in drawn]) for name in truth}
    return [keys | _row(name, truth[name], ends) for name, ends in found.items()]


def _row(name: str, truth: float, found: np.ndarray) -> dict:
    value, low, high = found.T
    below, above = np.mean(low > truth + 1e-12), np.mean(high < truth - 1e-12)
    deviation = value.std()
    labels = truth * (1 - truth) / deviation**2 if name == "error" else np.nan
    return {
        "metric": name,
        "truth": f"{truth:.6f}",
        "coverage": f"{1 - below - above:.4f}",
        "missed_below": f"{below:.4f}",
        "missed_above": f"{above:.4f}",
        "width": f"{np.mean(high - low):.6f}",
        "deviation": f"{deviation:.6f}",
        "equivalent_labels": f"{labels:.0f}",
    }


def done_cells(path: Path, datasets: int, seed: int) -> set[tuple]:
    """Cells already in the file with as many data sets and the same seed."""
    if not path.exists():
        return set()
    rows = csv.DictReader(path.open())
    return {_cell(r) for r in rows if int(r["datasets"]) >= datasets and int(r["seed"]) == seed}


def doubtful_cells(path: Path) -> set[tuple]:
    """Cells with a metric that chance alone may have put outside."""
    return {_cell(row) for row in _rows_outside(path) if _why(row) == CHANCE}


def _cell(row: dict) -> tuple:
    kinds = (int, int, str, float, int)
    return tuple(kind(row[key]) for kind, key in zip(kinds, KEYS, strict=True))


def _rows_outside(path: Path) -> list[dict]:
    return [r for r in csv.DictReader(path.open()) if not 0.93 <= float(r["coverage"]) <= 0.97]


def append(path: Path, rows: list[dict]) -> None:
    """Write a cell's rows at once."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def summary(path: Path) -> str:
    """A table of coverage by metric, and one of the error in every cell."""
    rows = list(csv.DictReader(path.open()))
    lines = ["# Coverage of nominal 95 % intervals from bags", ""]
    n_cells, draws = len({tuple(r[k] for k in KEYS) for r in rows}), rows[0]
    lines += [
        f"`python benchmarks/coverage.py`, {draws['datasets']} data sets a cell, seed "
        f"{draws['seed']}: {n_cells} of {len(CELLS)} cells."
    ]
    lines += ["", "| metric | cells | in 93-97 % | below | above | lowest | median | highest |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for name in dict.fromkeys(r["metric"] for r in rows):
        shares = np.array([float(r["coverage"]) for r in rows if r["metric"] == name])
        below, above = (shares < 0.93).sum(), (shares > 0.97).sum()
        numbers = (
            f"{100 * shares.min():.1f} | {100 * np.median(shares):.1f} | {100 * shares.max():.1f}"
        )
        inside = len(shares) - below - above
        lines.append(f"| {name} | {len(shares)} | {inside} | {below} | {above} | {numbers} |")
    outside = _outside_table(_rows_outside(path), len(rows))
    return "\n".join([*lines, "", *outside, "", *_error_table(rows), ""])


def _outside_table(found: list[dict], n_rows: int) -> list[str]:
    lines = [f"## Outside 93 to 97 %: {len(found)} of {n_rows}", ""]
    names = [*KEYS, "metric", "coverage", "width", "why"]
    lines += ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for r in found:
        cells = [r[k] for k in KEYS] + [
            r["metric"],
            f"{100 * float(r['coverage']):.1f}",
            r["width"],
            _why(r),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _why(row: dict) -> str:
    coverage = float(row["coverage"])
    if row["metric"] == "calibration_error" and coverage > 0.97:
        return "signs of small gaps are uncertain, and the upper end allows for the worse ones"
    if row["metric"] == "calibration_error":
        return "an error below its own standard error: a sum of absolute values is skewed there"
    if int(row["bag_size"]) * int(row["n_bags"]) * int(row["error_percent"]) <= 500:
        return "about five errors in all: coverage moves in steps"
    edge = 0.93 if coverage < 0.95 else 0.97
    if abs(coverage - edge) < 2 * np.sqrt(edge * (1 - edge) / int(row["datasets"])):
        return CHANCE
    return "not explained"


def _error_table(rows: list[dict]) -> list[str]:
    lines = ["## The error, and how many labels would tell it as precisely", ""]
    lines += ["| " + " | ".join([*KEYS, "instances", "coverage", "width", "labels"]) + " |"]
    lines += ["|---" * 9 + "|"]
    for r in rows:
        if r["metric"] == "error":
            instances = str(int(r["bag_size"]) * int(r["n_bags"]))
            shown = [instances, f"{100 * float(r['coverage']):.1f}", r["width"]]
            cells = [r[k] for k in KEYS] + shown + [r["equivalent_labels"]]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Run what is missing, then write the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this bag size only")
    parser.add_argument("--again", action="store_true", help="cells in doubt only, to other files")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cells at a time")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "coverage.csv"
    wanted = doubtful_cells(path) if options.again else set(CELLS)
    path = path.with_name("again.csv") if options.again else path
    done = done_cells(path, options.datasets, options.seed)
    # Small cells first: an interruption then loses little.
    ordered = sorted(wanted, key=lambda cell: (cell[0] * cell[1], CELLS.index(cell)))
    cells = [c for c in ordered if c not in done and options.only in (None, c[0])]
    run = partial(run_cell, datasets=options.datasets, seed=options.seed)
    with ProcessPoolExecutor(options.jobs) as pool:
        for cell, rows in zip(cells, pool.map(run, cells), strict=True):
            append(path, rows)
            print(*cell, flush=True)
    path.with_suffix(".md").write_text(summary(path))


if __name__ == "__main__":
    main()
