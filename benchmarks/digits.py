"""Digits, odd against even: `BagClassifier` out of the box, its error and the time of a fit.

    python benchmarks/digits.py

Train 1347 / test 450 by `train_test_split(..., random_state=0)`, pixels / 16, bags of 10 and of 50,
seeds 0 to 4 for bags and nets. The defaults were chosen on the splits with random_state 1 and 2.
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from unbag import BagClassifier, BagRidgeClassifier, BagTarget, make_bags

SEEDS = range(5)


def bagged_target(X, y, *, bag_size, seed):
    bags = make_bags(X, y, bag_size=bag_size, seed=seed)
    return BagTarget(bags.bag_of_row, bags.proportions[bags.bag_of_row])


def main():
    X, digit = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, (digit % 2 == 0).astype(int), random_state=0)
    X_train, X_test, y_train, y_test = parts
    for bag_size in (10, 50):
        for make in (BagClassifier, BagRidgeClassifier):
            errors, seconds = [], []
            for seed in SEEDS:
                target = bagged_target(X_train, y_train, bag_size=bag_size, seed=seed)
                options = {"random_state": seed} if make is BagClassifier else {}
                begun = time.perf_counter()
                model = make(**options).fit(X_train, target)
                seconds.append(time.perf_counter() - begun)
                errors.append(100 * (1 - model.score(X_test, y_test)))
            spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
            print(
                f"bags of {bag_size}, {make.__name__}: error {np.mean(errors):.2f} ± {spread:.2f} %"
                f" (mean and standard error of seeds 0-4), slowest fit {max(seconds):.2f} s"
            )


if __name__ == "__main__":
    main()
