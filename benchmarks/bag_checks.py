"""How often `check_bags` raises an alarm: on random bags, and on bags that are none.

    python benchmarks/bag_checks.py [--random 400] [--grouped 100] [--seed 0]

Random bags: real tables (scikit-learn's, their rows shuffled into bags) and simulated ones. For
each check the share of draws with a p-value of at most 5 % before any correction, and for the whole
report the share with any alarm, which is what is promised to be at most 5 %. Bags that are none:
the same tables sorted by a feature drawn anew each time, cut into bags. Writes
``results/checks/bag_checks.csv`` and ``.md``.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from unbag.bags import Bags, make_bags
from unbag.evaluation import privacy_noise
from unbag.evaluation.checks import CHECKS, check_made_bags
from unbag.randomness import numpy_generator

FOLDER = Path(__file__).parent / "results" / "checks"
LEVEL = 0.05
TABLES = {"breast cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}
BAG_SIZE = 8
FIELDS = ["bags", "kind", "check", "draws", "asked", "alarms", "share", "highest_expected"]


def table(name):
    X, classes = TABLES[name](return_X_y=True)
    return X, (classes == classes.max()).astype(float)


def shuffled(name, rng):
    X, labels = table(name)
    seed = int(rng.integers(2**31))
    return make_bags(X, labels, bag_size=BAG_SIZE, seed=seed, remainder="drop")


def grouped(name, rng):
    """Rows sorted by one feature that is not almost constant; ties in random order."""
    X, labels = table(name)
    rows = rng.permutation(len(X))[: int(0.8 * len(X))]
    commonest = np.array([np.unique(x, return_counts=True)[1].max() for x in X.T]) / len(X)
    feature = rng.choice(np.flatnonzero(commonest < 0.8))
    order = rows[np.argsort(X[rows, feature], kind="stable")]
    return _cut(X[order], labels[order], BAG_SIZE)


def _cut(X, labels, size):
    n_bags = len(X) // size
    counts = labels[: n_bags * size].reshape(n_bags, size).sum(axis=1)
    offsets = np.arange(0, n_bags * size + 1, size)
    return Bags.from_arrays(X[: n_bags * size], offsets=offsets, counts=counts)


def simulated(rng, *, sizes, prior, noise=None, epsilon=1.0):
    """Random bags: labels by chance, one of four features telling something of them."""
    sizes = np.asarray(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    labels = rng.random(offsets[-1]) < prior
    X = rng.normal(size=(len(labels), 4))
    X[:, 0] += 2 * labels
    counts = np.add.reduceat(labels.astype(float), offsets[:-1])
    if noise is None:
        return Bags.from_arrays(X, offsets=offsets, counts=counts)
    proportions, variance = noisy(rng, counts, sizes, noise, epsilon)
    return Bags.from_arrays(X, offsets=offsets, proportions=proportions, noise_variance=variance)


def noisy(rng, counts, sizes, noise, epsilon):
    """Proportions with declared noise of a kind, and its variance."""
    if noise == "rounding":
        return np.round(counts / sizes / epsilon) * epsilon, epsilon**2 / 12
    known = privacy_noise(
        noise, sizes, epsilon=epsilon, delta=1e-5 if noise == "gaussian" else None
    )
    if noise == "gaussian":
        drawn = rng.normal(size=len(sizes)) * np.sqrt(known.count_variance)
    elif noise == "laplace":
        drawn = rng.laplace(size=len(sizes)) / epsilon
    else:
        drawn = -np.diff(rng.geometric(1 - np.exp(-epsilon), size=(len(sizes), 2))).ravel()
    return (counts + drawn) / sizes, known.variance


def lognormal_sizes(rng, n_bags, middle, spread):
    return np.maximum(np.rint(middle * np.exp(spread * rng.normal(size=n_bags))), 1).astype(int)


def rare_values(rng):
    """Features most of which are zero: 30 categories one-hot, and single rare marks."""
    bags = simulated(rng, sizes=rng.integers(5, 40, 60), prior=0.3)
    n_rows = len(bags.X)
    marks = rng.random((n_rows, 20)) < np.geomspace(1 / n_rows, 0.1, 20)
    X = [np.eye(30)[rng.integers(0, 30, n_rows)], marks, bags.X[:, :1]]
    X = np.concatenate(X, axis=1)
    return replace(bags, X=X)


def several_classes(rng):
    classes = np.eye(4)[rng.choice(4, size=900, p=[0.4, 0.3, 0.2, 0.1])]
    X = rng.normal(size=(900, 4)) + classes
    return make_bags(X, classes, bag_size=15, seed=int(rng.integers(2**31)))


def simulated_group(rng):
    """Two features decide the label; bags are sorted by a noisy version of the first."""
    X = rng.normal(size=(1200, 3))
    labels = (X[:, 0] + X[:, 1] > 0).astype(float)
    order = np.argsort(X[:, 0] + rng.normal(size=1200))
    return _cut(X[order], labels[order], 20)


RANDOM = {name: (lambda rng, name=name: shuffled(name, rng)) for name in TABLES} | {
    "60 of 15": lambda rng: simulated(rng, sizes=[15] * 60, prior=0.3),
    "200 of 4": lambda rng: simulated(rng, sizes=[4] * 200, prior=0.5),
    "60 of 3 to 80": lambda rng: simulated(rng, sizes=rng.integers(3, 80, 60), prior=0.2),
    "100 of 50, rare": lambda rng: simulated(rng, sizes=[50] * 100, prior=0.02),
    "80 lognormal, rare": lambda rng: simulated(
        rng, sizes=lognormal_sizes(rng, 80, 30, 2), prior=0.002
    ),
    "20 of 500": lambda rng: simulated(rng, sizes=[500] * 20, prior=0.4),
    "300 of 20": lambda rng: simulated(rng, sizes=[20] * 300, prior=0.3),
    "60 of 20, Laplace": lambda rng: simulated(rng, sizes=[20] * 60, prior=0.3, noise="laplace"),
    **{
        f"60 lognormal, {noise} {epsilon:g}": lambda rng, noise=noise, epsilon=epsilon: simulated(
            rng, sizes=lognormal_sizes(rng, 60, 20, 1), prior=0.3, noise=noise, epsilon=epsilon
        )
        for noise, epsilon in (
            ("geometric", 0.5),
            ("laplace", 0.5),
            ("gaussian", 0.5),
            ("geometric", 3),
        )
    },
    "60 of 500, rounded 0.01": lambda rng: simulated(
        rng, sizes=[500] * 60, prior=0.3, noise="rounding", epsilon=0.01
    ),
    "60 of 15, 4 classes": several_classes,
    "rare values": rare_values,
}
GROUPED = {name: (lambda rng, name=name: grouped(name, rng)) for name in TABLES} | {
    "simulated": simulated_group
}


def alarms(draw, *, name, draws, seed):
    """P-values (draws, checks) before correction, and whether the report raised anything.

    Bags are in ten blocks, dealt in turn.
    """
    rng = numpy_generator("bag checks", seed, name)
    p_values, raised = np.full((draws, len(CHECKS)), np.nan), np.zeros(draws, dtype=bool)
    for number in range(draws):
        bags = draw(rng)
        blocks = np.arange(bags.n_bags) % 10
        p_values[number] = [check.answer(bags, blocks).p_value for check in CHECKS.values()]
        raised[number] = not check_made_bags(bags, blocks=blocks).plausible
    return p_values, raised


def rows_of(kind, draws_of, *, draws, seed):
    for name, draw in draws_of.items():
        p_values, raised = alarms(draw, name=name, draws=draws, seed=seed)
        for check, p in zip(CHECKS, p_values.T, strict=True):
            if asked := int((~np.isnan(p)).sum()):
                yield _row(name, kind, check, draws, asked, int((p <= LEVEL).sum()))
        yield _row(name, kind, "any", draws, draws, int(raised.sum()))


def _row(name, kind, check, draws, asked, found):
    # Exceeded once in 2,000 rows by a check whose level is exact.
    limit = int(stats.binom.isf(1 / 2000, asked, LEVEL)) / asked
    return dict(
        zip(FIELDS, (name, kind, check, draws, asked, found, found / asked, limit), strict=True)
    )


def page(rows, options):
    lines = ["# How often `check_bags` raises an alarm", ""]
    command = f"benchmarks/bag_checks.py --random {options.random} --grouped {options.grouped}"
    lines += [f"`python {command}`, seed {options.seed}. Share of draws in %.", ""]
    for kind, title in {
        "random": "Random bags: each check at 5 % before correction, and the whole report",
        "grouped": "Bags sorted by a feature",
    }.items():
        lines += [f"## {title}", "", "| bags | " + " | ".join([*CHECKS, "any alarm"]) + " |"]
        lines += ["|---" * (len(CHECKS) + 2) + "|"]
        own = [r for r in rows if r["kind"] == kind]
        for name in dict.fromkeys(r["bags"] for r in own):
            shares = {r["check"]: r["share"] for r in own if r["bags"] == name}
            cells = [f"{100 * shares[c]:.1f}" if c in shares else "" for c in [*CHECKS, "any"]]
            lines.append("| " + " | ".join([name, *cells]) + " |")
        lines.append("")
    beyond = [r for r in rows if r["kind"] == "random" and r["share"] > r["highest_expected"]]
    found = ", ".join(f"{r['check']} on {r['bags']}" for r in beyond) or "none"
    number = options.random
    lines += [f"{number} draws of random bags, {options.grouped} of the others. Beyond what chance"]
    lines += [f"explains (once in 2,000) of a check at its level: {found}.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--random", type=int, default=400)
    parser.add_argument("--grouped", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = list(rows_of("random", RANDOM, draws=options.random, seed=options.seed))
    rows += rows_of("grouped", GROUPED, draws=options.grouped, seed=options.seed)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "bag_checks.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = page(rows, options)
    (FOLDER / "bag_checks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
