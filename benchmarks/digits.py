"""Digits, odd against even: `BagClassifier` out of the box beside naive ways, over draws of bags.

    python benchmarks/digits.py [--draws 20] [--bag-sizes 10,50]

Train 1347 / test 450 by `train_test_split(..., random_state=0)`, pixels / 16; draw d has the bags
and the nets of seed d. The defaults were chosen on the splits with random_state 1 and 2. Prints
the mean error with its standard error, and the spread and the range over draws.
"""

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split

from unbag import BagClassifier, BagRidgeClassifier, make_bags


def bag_rates(bags, X_test, seed):
    """Logistic regression with every instance's bag proportion as its soft label."""
    X, rates = bags.X[bags.rows], np.repeat(bags.proportions, bags.sizes)
    labels = np.repeat([1, 0], len(X))
    weights = np.concatenate([rates, 1 - rates])
    model = LogisticRegression(max_iter=1000).fit(np.tile(X, (2, 1)), labels, weights)
    return model.predict_proba(X_test)[:, 1]


def bag_means(bags, X_test, seed):
    """`RidgeCV` of proportions on the means of the bags."""
    means = np.add.reduceat(bags.X[bags.rows], bags.starts) / bags.sizes[:, None]
    center, scale = bags.X.mean(axis=0), bags.X.std(axis=0) + 1e-9
    model = RidgeCV(np.logspace(-4, 4, 17)).fit((means - center) / scale, bags.proportions)
    return model.predict((X_test - center) / scale)


def ridge(bags, X_test, seed):
    return BagRidgeClassifier().fit_bags(bags).predict_proba(X_test)[:, 1]


def nets(bags, X_test, seed):
    return BagClassifier(random_state=seed).fit_bags(bags).predict_proba(X_test)[:, 1]


METHODS = {
    "BagClassifier": nets,
    "BagRidgeClassifier": ridge,
    "naive: RidgeCV on bag means": bag_means,
    "naive: logistic on bag rates": bag_rates,
}


def errors_of(method, data, bag_size, draws):
    X_train, X_test, y_train, y_test = data
    errors, seconds = [], []
    for seed in range(draws):
        bags = make_bags(X_train, y_train, bag_size=bag_size, seed=seed)
        begun = time.perf_counter()
        scores = method(bags, X_test, seed)
        seconds.append(time.perf_counter() - begun)
        errors.append(100 * np.mean((scores > 0.5) != y_test))
    return np.array(errors), max(seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--bag-sizes", default="10,50")
    options = parser.parse_args()
    X, digit = load_digits(return_X_y=True)
    X = (X / 16).astype("float32")
    data = train_test_split(X, (digit % 2 == 0).astype(int), random_state=0)
    for bag_size in map(int, options.bag_sizes.split(",")):
        print(f"bags of {bag_size}, {options.draws} draws: error in %")
        for name, method in METHODS.items():
            errors, slowest = errors_of(method, data, bag_size, options.draws)
            spread = errors.std(ddof=1)
            print(
                f"  {name:30} {errors.mean():6.2f} ± {spread / len(errors) ** 0.5:.2f}, "
                f"spread {spread:.2f}, {errors.min():.1f} to {errors.max():.1f}, "
                f"slowest fit {slowest:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
