"""Seconds for the exact minimisers: thresholds on a million instances, every rule, one core."""

import time

import numpy as np

from unbag_paper.exact import (
    EPRM,
    CountDebiasedSquare,
    CountProportionLog,
    CountProportionSquare,
    EasyLLP,
    minimise_intervals,
    minimise_thresholds,
)

RULES = [
    EPRM(),
    CountProportionSquare(),
    CountProportionLog(),
    CountDebiasedSquare(),
    EasyLLP(prior=0.5),
    EasyLLP(prior="estimated"),
    EasyLLP(prior="split"),
]


def problem(n_instances: int, bag_size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.random(n_instances)
    labels = (x + 0.3 * rng.normal(size=n_instances) > 0.5).reshape(-1, bag_size)
    return x, labels.mean(axis=1), np.full(len(labels), bag_size)


def seconds(search, n_instances: int, bag_size: int, rule) -> float:
    x, proportions, sizes = problem(n_instances, bag_size)
    start = time.perf_counter()
    search(x, proportions, sizes=sizes, rule=rule)
    return time.perf_counter() - start


def main() -> None:
    for rule in RULES:
        for bag_size in (10, 1000):
            taken = seconds(minimise_thresholds, 1_000_000, bag_size, rule)
            print(
                f"thresholds 1,000,000 instances bags of {bag_size:4d} {rule!s:36s} {taken:.2f} s"
            )
    for rule in (EasyLLP(prior=0.5), EPRM(), CountDebiasedSquare()):
        size = 1_000_000 if isinstance(rule, EasyLLP) else 10_000
        taken = seconds(minimise_intervals, size, 10, rule)
        print(f"intervals {size:,} instances bags of 10 {rule!s:36s} {taken:.2f} s")


if __name__ == "__main__":
    main()
