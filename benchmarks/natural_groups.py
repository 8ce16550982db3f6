"""Natural groups by simulation: bag effects, shares within groups, and metrics of scores.

    python benchmarks/natural_groups.py [--jobs 16]    # an hour of one core

Each line of the tables is one world. Worlds in which the assumption of an interval holds come
first; the others show what happens where it fails. A line that is in the file is not run again;
every line has a seed of its own. Writes ``results/natural/*.csv`` and ``natural.md``.
"""

import argparse
import csv
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.special import expit

import unbag
from unbag.bags import Bags
from unbag.evaluation.bag_effects import estimate_bag_effects
from unbag.evaluation.natural import (
    explained_deviance,
    group_calibration,
    label_metrics,
    metric_bounds,
)

FOLDER = Path(__file__).parent / "results" / "natural"
CONTEXT, SMOOTHNESS = 0.25, 0.4
FAILS = "(fails"  # of the assumption
METRICS = ("error", "auc", "brier", "log_loss")


def cut(values, labels):
    """Bags of rows of equal number: scores, labels, bags."""
    n_bags, size = labels.shape
    offsets = np.arange(0, n_bags * size + 1, size)
    zeros = np.zeros((labels.size, 1))
    bags = Bags.from_arrays(zeros, offsets=offsets, counts=labels.sum(axis=1))
    return values.ravel(), labels.ravel().astype(float), bags


def effects_world(rng, *, bags, size, deviation, rare=0.0):
    """Probabilities, off by a common shift, of bags that have effects on the logit."""
    logits = 1.5 * rng.normal(size=(bags, size)) + 0.5 * rng.normal(size=(bags, 1)) - rare
    effects = 0.3 + deviation * rng.normal(size=(bags, 1))
    labels = rng.random(logits.shape) < expit(logits + effects)
    scores, _, made = cut(expit(logits), labels)
    return scores, made


def run_effects(rng, draws, **world):
    found = [estimate_bag_effects(*effects_world(rng, **world)) for _ in range(draws)]
    squares, true = np.array([f.deviation**2 for f in found]), world["deviation"]
    return {
        "true_variance": true**2,
        "mean_variance": squares.mean(),
        "standard_error": squares.std(ddof=1) / np.sqrt(draws),
        "median_deviation": np.median([f.deviation for f in found]),
        "covered": np.mean([f.low <= true <= f.high for f in found]),
        "rejected": np.mean([f.p_value < 0.05 for f in found]),
    }


EFFECTS = {
    f"{rare}{bags} bags of {size}, deviation {deviation:g}": {
        "bags": bags, "size": size, "deviation": deviation, "rare": 3.0 if rare else 0.0,
    }
    for (rare, bags, size), deviation in product(
        [("", 10, 20), ("", 25, 20), ("", 100, 20), ("", 25, 100), ("rare labels, ", 100, 20)],
        [0.0, 0.3, 0.6, 1.0],
    )
}  # fmt: skip


def voters(rng, *, bags, groups, moved, effect=0.08, own=0.04):
    """Members and positives by group; `moved` says how composition and size move each group."""
    shares = rng.dirichlet([1.0, 2.0] if groups == 2 else [2.0, 1.0, 0.6], bags)
    sizes = np.exp(rng.uniform(np.log(50), np.log(1500), bags)).astype(int)
    members = rng.multinomial(sizes, shares)
    x, rank = members[:, -1] / sizes - 0.5, np.argsort(np.argsort(sizes)) / bags - 0.5
    means = np.array([0.3, 0.7] if groups == 2 else [0.3, 0.75, 0.6])
    context = np.stack([moved(x, rank, g) + 0 * x for g in range(groups)], axis=1)
    chance = effect * rng.normal(size=(bags, 1)) + own * rng.normal(size=(bags, groups))
    return members, rng.binomial(members, np.clip(means + context + chance, 0, 1))


def run_groups(rng, draws, **world):
    held, given, widths = [], [], []
    for _ in range(draws):
        members, positives = voters(rng, **world)
        found = unbag.estimate_groups(members, positives.sum(axis=1), context=CONTEXT)
        truth = positives.sum(axis=0) / members.sum(axis=0)
        ends = np.array([(e.low, e.high) for e in found.estimates.values()])
        bounds = np.array(list(found.bounds.values()))
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        given.append(np.isfinite(ends[:, 0]))
        widths.append([np.ptp(ends, axis=1).mean(), np.ptp(bounds, axis=1).mean()])
    n_given, (width, bound_width) = np.sum(given, axis=0), np.nanmean(widths, axis=0)
    by_group = np.sum(held, axis=0) / np.maximum(n_given, 1)
    return {
        "given": n_given.min() / draws,
        "lowest": by_group.min(),
        "mean": by_group.mean(),
        "width": width,
        "bound_width": bound_width,
    }


MOVES = {
    "no context": lambda x, rank, g: 0.0,
    "context at its bound, up": lambda x, rank, g: CONTEXT * x,
    "context at its bound, down": lambda x, rank, g: -CONTEXT * x,
    "context at its bound, groups opposed": lambda x, rank, g: CONTEXT * x * (-1) ** g,
    "size at its bound": lambda x, rank, g: CONTEXT * rank,
    "bent context (fails: not linear)": lambda x, rank, g: CONTEXT * np.abs(x),
    "steps of context (fails: not linear)": lambda x, rank, g: CONTEXT / 2 * np.sign(x),
    "twice the context (fails)": lambda x, rank, g: 2 * CONTEXT * x,
    "four times the context (fails)": lambda x, rank, g: 4 * CONTEXT * x,
}
GROUPS = {
    f"{name}; {groups} groups, {bags} bags": {"bags": bags, "groups": groups, "moved": moved}
    for (groups, bags), (name, moved) in product([(2, 20), (2, 100), (3, 100)], MOVES.items())
}


def scored(rng, *, bags, size, within=0.0, between=0.0, effect=0.0, logit=0.0, hidden=0.0):
    """Scores and labels; chances move by `within` and `between` more than scores say."""
    centre = rng.uniform(0.25, 0.75, size=(bags, 1))
    scores = np.clip(centre + 0.25 * rng.uniform(-1, 1, size=(bags, size)), 0.02, 0.98)
    means = scores.mean(axis=1, keepdims=True)
    chances = scores + within * (scores - 0.5) + between * (means - 0.5)
    chances = np.clip(chances + effect * rng.normal(size=(bags, 1)), 1e-3, 1 - 1e-3)
    if logit or hidden:
        moved = logit * rng.normal(size=(bags, 1)) + hidden * rng.normal(size=(bags, size))
        chances = expit(np.log(chances / (1 - chances)) + moved)
    return cut(scores, rng.random(scores.shape) < chances)


def run_scores(rng, draws, **world):
    scores, _, bags = scored(rng, **world | {"bags": 20_000})
    explained = explained_deviance(scores, bags).value
    held, widths, others = [], [], []
    for _ in range(draws):
        scores, labels, bags = scored(rng, **world)
        found = metric_bounds(scores, bags, None, SMOOTHNESS, units=None, confidence=0.95)
        true = label_metrics(scores, labels)
        ends = [(found[m].smooth_low - 1e-9, true[m], found[m].smooth_high + 1e-9) for m in METRICS]
        held.append([low <= value <= high for low, value, high in ends])
        error, share = found["error"], explained_deviance(scores, bags)
        curve = group_calibration(scores, bags, n_bins=10, confidence=0.95)
        widths.append([error.smooth_high - error.smooth_low, error.high - error.low])
        inside = np.mean((curve.low <= curve.x) & (curve.x <= curve.high))
        others.append([share.low <= explained <= share.high, inside])
    metrics, (width, bound_width) = np.mean(held, axis=0), np.mean(widths, axis=0)
    deviance, calibration = np.mean(others, axis=0)
    return dict(zip(METRICS, metrics.tolist(), strict=True)) | {
        "width": width,
        "bound_width": bound_width,
        "explained_deviance": deviance,
        "calibration": calibration,
    }


CHANCES = {
    "chances are the scores": {},
    "bag effects": {"effect": 0.1},
    "flatter within, steeper between, at the bound": {"within": -0.4, "between": 0.4},
    "the same with bag effects": {"within": -0.4, "between": 0.4, "effect": 0.1},
    "steeper within, flatter between, at the bound": {"within": 0.4, "between": -0.4},
    "effects on the logit (fails: not additive)": {"logit": 1.0},
    "hidden features of rows (fails: flatter, bent)": {"hidden": 1.5},
    "twice the bound (fails)": {"within": -0.8, "between": 0.8},
    "scores tell bags, not rows (fails)": {"within": -1.0, "between": 1.0},
    "scores mislead within bags (fails)": {"within": -1.4, "between": 1.4},
}
SCORES = {
    f"{name}; {bags} bags of {size}": {"bags": bags, "size": size, **world}
    for (bags, size), (name, world) in product([(20, 20), (100, 30)], CHANCES.items())
}
PARTS = {
    "effects": (run_effects, EFFECTS, 500),
    "groups": (run_groups, GROUPS, 1000),
    "scores": (run_scores, SCORES, 1000),
}
DRAWS_IF_FAILS = 200


def run_world(name, world):
    """One line of a table, rounded."""
    run, worlds, draws = PARTS[name]
    draws = DRAWS_IF_FAILS if FAILS in world else draws
    rng = np.random.default_rng(crc32(world.encode()))
    row = {"world": world, "draws": draws, **run(rng, draws, **worlds[world])}
    return {k: round(float(v), 5) if isinstance(v, float) else v for k, v in row.items()}


def read(folder, name):
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return sorted(rows, key=lambda row: list(PARTS[name][1]).index(row["world"]))


def append(folder, name, row):
    path = folder / f"{name}.csv"
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def line(*cells):
    return "| " + " | ".join(cells) + " |"


def percent(value):
    return f"{100 * float(value):.1f}"


def effects_lines(rows):
    yield line("world", "true variance", "mean estimate", "covered, %", "test rejects, %")
    yield line(*["---"] * 5)
    for row in rows:
        mean = f"{float(row['mean_variance']):.3f} ± {float(row['standard_error']):.3f}"
        true = f"{float(row['true_variance']):.2f}"
        yield line(row["world"], true, mean, percent(row["covered"]), percent(row["rejected"]))


def groups_lines(rows):
    head = ("given, %", "covered, worst group, %", "mean, %", "mean width", "width of bounds")
    yield line("world", *head)
    yield line(*["---"] * 6)
    for row in rows:
        widths = [f"{float(row[key]):.3f}" for key in ("width", "bound_width")]
        shares = [percent(row[key]) for key in ("given", "lowest", "mean")]
        yield line(row["world"], *shares, *widths)


def scores_lines(rows):
    shown = (*METRICS, "explained_deviance", "calibration")
    yield line("world", *(f"{name}, %" for name in shown), "width, error", "width of bounds")
    yield line(*["---"] * (len(shown) + 3))
    for row in rows:
        widths = [f"{float(row[key]):.3f}" for key in ("width", "bound_width")]
        yield line(row["world"], *(percent(row[name]) for name in shown), *widths)


TEXTS = {
    "effects": (
        "Bag effects",
        "`estimate_bag_effects`. Where the deviation is 0 the last column is the size of the test, "
        "elsewhere its power. No estimate is negative, so their mean is above a variance of 0.",
        effects_lines,
    ),
    "groups": (
        "Shares within groups",
        f"`estimate_groups(..., context={CONTEXT:g})`. Intervals are as wide as the worst context "
        "asks for: they cover 95 % there and more, by design, in every other world. None is given "
        "where the counts contradict the assumption: covered is of those given.",
        groups_lines,
    ),
    "scores": (
        "Metrics of scores",
        f'`evaluate(..., grouping="natural", smoothness={SMOOTHNESS:g})`. Metrics: share of '
        "intervals that hold the metric of the true labels. Intervals are as wide as the worst "
        "departure of chances from scores asks for, flatter or steeper within bags at the bound: "
        "they cover 95 % there and more, by design, in every other world. Explained deviance "
        "assumes nothing of the scores. Calibration: share of groups of bags whose interval holds "
        "their mean score, which it should where chances average the scores in every bag.",
        scores_lines,
    ),
}


def write_page(folder):
    text = ["# Natural groups by simulation", "", "Made by `python benchmarks/natural_groups.py`."]
    for name, (title, words, lines) in TEXTS.items():
        rows = read(folder, name)
        if rows:
            draws = int(rows[0]["draws"])
            words += f" {draws} draws: 95 % has a standard error of {error(draws):.1f} points."
            fewer = [row["draws"] for row in rows if FAILS in row["world"]]
            words += f" Worlds in which the assumption fails have {fewer[0]}." if fewer else ""
            text += ["", f"## {title}", "", words, "", *lines(rows)]
    (folder / "natural.md").write_text("\n".join(text) + "\n", encoding="utf-8")


def error(draws):
    return 100 * np.sqrt(0.05 * 0.95 / draws)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    done = {(name, row["world"]) for name in PARTS for row in read(options.folder, name)}
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = {
            pool.submit(run_world, name, world): name
            for name, (_, worlds, _) in PARTS.items()
            for world in worlds
            if (name, world) not in done
        }
        for job in as_completed(jobs):
            append(options.folder, jobs[job], job.result())
            print(job.result(), flush=True)
    write_page(options.folder)


if __name__ == "__main__":
    main()
