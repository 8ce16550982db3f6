"""Boosting on bags beside the same learner with instance labels.

``python benchmarks/boosting.py`` draws 2,000 bags of 20 for each seed, fits
`BagBoostingClassifier` to the proportions and to the labels with the same settings, and prints the
accuracy of both on 20,000 fresh instances. Two problems: one with label noise (the best possible
accuracy is about 93 %), one without any.
"""

from __future__ import annotations

import argparse

import numpy as np

from unbag import BagBoostingClassifier
from unbag.randomness import numpy_generator


def draw(problem: str, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten normal features, four of which decide the label."""
    rng = numpy_generator("boosting", problem, seed)
    X = rng.normal(size=(n, 10))
    if problem == "noisy":
        score = X[:, 0] * X[:, 1] + X[:, 2] ** 2 - 1 + 0.5 * X[:, 3] + 0.3 * rng.normal(size=n)
    else:
        score = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3])
    return X, (score > 0).astype(int)


def accuracies(problem: str, seed: int, *, n_bags: int, bag_size: int) -> tuple[float, float]:
    """Accuracy learned from bags, and from labels."""
    n = n_bags * bag_size
    X, labels = draw(problem, seed, n + 20_000)
    bags = np.repeat(np.arange(n_bags), bag_size)
    y = labels[:n].reshape(n_bags, bag_size).mean(axis=1)[bags]
    from_bags = BagBoostingClassifier(random_state=seed).fit(X[:n], y, bags=bags)
    from_labels = BagBoostingClassifier(random_state=seed).fit(X[:n], labels[:n])
    return from_bags.score(X[n:], labels[n:]), from_labels.score(X[n:], labels[n:])


def main() -> None:
    """Print a line a seed, then means and spread."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--bags", type=int, default=2000)
    parser.add_argument("--size", type=int, default=20)
    options = parser.parse_args()
    for problem in ("noisy", "noiseless"):
        found = []
        for seed in range(options.seeds):
            found.append(accuracies(problem, seed, n_bags=options.bags, bag_size=options.size))
            print(f"{problem} seed {seed}: bags {found[-1][0]:.4f}, labels {found[-1][1]:.4f}")
        table = 100 * np.asarray(found)
        gaps = table[:, 1] - table[:, 0]
        print(
            f"{problem}: bags {table[:, 0].mean():.2f} %, labels {table[:, 1].mean():.2f} %, "
            f"gap {gaps.mean():.2f} points (deviation over seeds {gaps.std(ddof=1):.2f}, "
            f"largest {gaps.max():.2f})"
        )


if __name__ == "__main__":
    main()
