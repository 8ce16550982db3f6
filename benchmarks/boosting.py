"""Boosting on bags beside the same learner with instance labels.

    python benchmarks/boosting.py             gap to the same learner with labels, ten draws
    python benchmarks/boosting.py --choose    settings side by side, by held-out bags of other draws
    python benchmarks/boosting.py --time      processor time beside LightGBM with labels

Each draw has 2,000 bags of 20. With each of its rules `BagBoostingClassifier` is fitted to the
proportions and to the labels with the same settings, and both are scored on 20,000 fresh instances.
Two problems: one with label noise (the best possible accuracy is about 93 %), one without any. With
``--choose`` no label is used: 1,000 held-out bags of draws 100, 101, ... estimate the error of
every setting. ``--time`` fits 20,000 instances with 100 features by the likelihood of counts, and
divides by the time of the same learner with labels, and of LightGBM with labels: the same trees,
and 100 rounds as it comes. Medians of `--seeds` fits, one thread.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from unbag import BagBoostingClassifier, evaluate
from unbag.randomness import numpy_generator

PROBLEMS = ("noisy", "noiseless")
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "debiased_square": [
        {},
        {"n_runs": 1},
        {"n_runs": 5},
        {"n_runs": 1, "learning_rate": 0.05},
        {"n_runs": 1, "learning_rate": 0.2},
        {"n_runs": 1, "n_estimators": 1200},
        {"n_runs": 1, "num_leaves": 5},
        {"n_runs": 1, "num_leaves": 16},
        {"n_runs": 1, "reg_lambda": 20.0},
        {"n_runs": 1, "reg_lambda": 100.0},
    ],
    "count_likelihood": [
        {},
        {"n_runs": 1},
        {"n_runs": 1, "reg_lambda": 0.3},
        {"n_runs": 1, "reg_lambda": 3.0},
        {"n_runs": 1, "reg_lambda": 10.0},
        {"n_runs": 1, "n_estimators": 800},
        {"n_runs": 1, "reg_lambda": 3.0, "n_estimators": 800},
        {"n_runs": 1, "num_leaves": 16},
    ],
}
# By `--choose`, which sees no label.
CHOSEN: dict[str, dict[str, Any]] = {
    "debiased_square": {},
    "count_likelihood": {"n_runs": 1, "n_estimators": 800},
}


def draw(problem: str, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten normal features, four of which decide the label."""
    rng = numpy_generator("boosting", problem, seed)
    X = rng.normal(size=(n, 10))
    if problem == "noisy":
        score = X[:, 0] * X[:, 1] + X[:, 2] ** 2 - 1 + 0.5 * X[:, 3] + 0.3 * rng.normal(size=n)
    else:
        score = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3])
    return X, (score > 0).astype(int)


def in_bags(labels: np.ndarray, bag_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Proportion and bag of every instance."""
    bags = np.arange(len(labels)) // bag_size
    return labels.reshape(-1, bag_size).mean(axis=1)[bags], bags


def accuracies(
    problem: str, rule: str, seed: int, *, n_bags: int, bag_size: int
) -> tuple[float, float]:
    """Accuracy learned from bags, and from labels."""
    n = n_bags * bag_size
    X, labels = draw(problem, seed, n + 20_000)
    y, bags = in_bags(labels[:n], bag_size)
    settings = CHOSEN[rule] | {"rule": rule, "random_state": seed}
    from_bags = BagBoostingClassifier(**settings).fit(X[:n], y, bags=bags)
    from_labels = BagBoostingClassifier(**settings).fit(X[:n], labels[:n])
    return from_bags.score(X[n:], labels[n:]), from_labels.score(X[n:], labels[n:])


def held_out_error(
    problem: str, seed: int, settings: dict[str, Any], *, n_bags: int, bag_size: int
) -> float:
    """Error of a setting as estimated from bags that it was not fitted to."""
    n = n_bags * bag_size
    X, labels = draw(problem, seed, n + 1000 * bag_size)
    y, bags = in_bags(labels, bag_size)
    clf = BagBoostingClassifier(random_state=seed, **settings).fit(X[:n], y[:n], bags=bags[:n])
    return float(evaluate(clf, X[n:], y[n:], bags=bags[n:])["error"].value)


def choose(options: argparse.Namespace, problem: str, rule: str) -> None:
    """Print the estimated error of every setting, paired with that of the default."""
    sizes = {"n_bags": options.bags, "bag_size": options.size}
    found = {}
    for settings in SETTINGS[rule]:
        errors = [
            held_out_error(problem, 100 + i, settings | {"rule": rule}, **sizes)
            for i in range(options.seeds)
        ]
        found[str(settings)] = 100 * np.asarray(errors)
        print(f"{problem} {rule} {settings}: error {100 * np.mean(errors):.2f} %", flush=True)
    for name, errors in found.items():
        gap = errors - found["{}"]
        spread = gap.std(ddof=1) / len(gap) ** 0.5
        print(f"{problem} {rule} {name}: {gap.mean():+.2f} points from default (± {spread:.2f})")


def seconds(fit: Any) -> float:
    """Processor seconds of a call."""
    begun = time.process_time()
    fit()
    return time.process_time() - begun


def time_fits(seed: int, bag_size: int) -> dict[str, float]:
    """Processor seconds by the likelihood of counts, and with labels in three ways."""
    import lightgbm

    X, labels = draw("noisy", seed, 20_000)
    X = np.hstack([X, numpy_generator("time", seed).normal(size=(len(X), 90))])
    y, bags = in_bags(labels, bag_size)
    clf = BagBoostingClassifier(rule="count_likelihood", random_state=seed)
    plain = {"objective": "binary", "verbosity": -1, "num_threads": 1, "seed": seed}
    same = plain | {"num_leaves": clf.num_leaves, "extra_trees": True}

    def boost(parameters: dict[str, Any], rounds: int) -> Any:
        return lightgbm.train(parameters, lightgbm.Dataset(X, labels), rounds)

    return {
        "bags": seconds(lambda: clf.fit(X, y, bags=bags)),
        "the same learner with labels": seconds(lambda: clf.fit(X, labels)),
        "LightGBM, the same trees": seconds(lambda: boost(same, clf.n_estimators)),
        "LightGBM as it comes": seconds(lambda: boost(plain, 100)),
    }


def print_times(options: argparse.Namespace) -> None:
    """Print medians, and the ratios of bags to the others."""
    for bag_size in (10, 50, 500):
        found = [time_fits(seed, bag_size) for seed in range(options.seeds)]
        middle = {name: float(np.median([times[name] for times in found])) for name in found[0]}
        for name, value in middle.items():
            ratio = middle["bags"] / value
            print(f"bags of {bag_size}: {name} {value:.2f} s, ratio {ratio:.1f}", flush=True)


def compare(options: argparse.Namespace, problem: str, rule: str) -> dict[str, float]:
    """Print a line a seed, then means and spread."""
    found = []
    for seed in range(options.seeds):
        found.append(accuracies(problem, rule, seed, n_bags=options.bags, bag_size=options.size))
        bags, labels = found[-1]
        print(f"{problem} {rule} seed {seed}: bags {bags:.4f}, labels {labels:.4f}", flush=True)
    table = 100 * np.asarray(found)
    gaps = table[:, 1] - table[:, 0]
    summary = {
        "bags": table[:, 0].mean(),
        "labels": table[:, 1].mean(),
        "gap": gaps.mean(),
        "deviation_over_seeds": gaps.std(ddof=1),
        "standard_error": gaps.std(ddof=1) / len(gaps) ** 0.5,
        "largest": gaps.max(),
    }
    summary = {name: round(float(value), 3) for name, value in summary.items()}
    words = ", ".join(f"{name} {value:.2f}" for name, value in summary.items())
    print(f"{problem} {rule}, in points: {words}")
    return summary


def main() -> None:
    """Parse and dispatch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--bags", type=int, default=2000)
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--choose", action="store_true", help="compare settings, without labels")
    parser.add_argument("--time", action="store_true", help="processor time as ratios")
    parser.add_argument("--json", default=None, help="also write the figures to this file")
    parser.add_argument("--rules", nargs="+", choices=[*SETTINGS], default=[*SETTINGS])
    options = parser.parse_args()
    if options.time:
        print_times(options)
        return
    if options.choose:
        for problem, rule in itertools.product(PROBLEMS, options.rules):
            choose(options, problem, rule)
        return
    summary: dict[str, Any] = {
        problem: {rule: compare(options, problem, rule) for rule in options.rules}
        for problem in PROBLEMS
    }
    if options.json:
        shape = {"seeds": options.seeds, "bags": options.bags, "bag_size": options.size}
        Path(options.json).write_text(json.dumps(shape | summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
