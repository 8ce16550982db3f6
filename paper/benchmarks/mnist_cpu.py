"""MNIST, odd against even, on the CPU: the closed form at bags of 1000, a net at bags of 100.

    python paper/benchmarks/mnist_cpu.py --data DIR

DIR holds MNIST's files (or set UNBAG_DATA). Prints errors on the test set and the time of each fit.
The net measures no error of its own on the way, which would take longer.
"""

import argparse
import time

import numpy as np

from unbag import BagClassifier, BagRidgeClassifier, make_bags
from unbag_paper.data import load_problem


def ridge(data, seeds):
    X_train, X_test = (X.reshape(len(X), -1) / np.float32(255) for X in (data.X_train, data.X_test))
    errors, seconds = [], []
    for seed in seeds:
        bags = make_bags(X_train, data.y_train, bag_size=1000, seed=seed)
        y = bags.proportions[bags.bag_of_row]
        begun = time.perf_counter()
        model = BagRidgeClassifier().fit(X_train, y, bags=bags.bag_of_row)
        seconds.append(time.perf_counter() - begun)
        errors.append(100 * (1 - model.score(X_test, data.y_test)))
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
    print(
        f"ridge, bags of 1000: error {np.mean(errors):.2f} ± {spread:.2f} % (mean, standard error "
        f"of seeds {seeds[0]}-{seeds[-1]}), slowest fit {max(seconds):.2f} s",
        flush=True,
    )


def net(data, *, epochs):
    bags = make_bags(data.X_train, data.y_train, bag_size=100, seed=0)
    y = bags.proportions[bags.bag_of_row]
    begun = time.perf_counter()
    model = BagClassifier(model="mlp100", max_epochs=epochs, validation_share=0, random_state=0)
    model.fit(data.X_train, y, bags=bags.bag_of_row)
    seconds = time.perf_counter() - begun
    error = 100 * (1 - model.score(data.X_test, data.y_test))
    print(f"100 units, bags of 100, {epochs} epochs, seed 0: error {error:.2f} %, {seconds:.0f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="folder that holds the files")
    arguments = parser.parse_args()
    data = load_problem("mnist", folder=arguments.data)
    ridge(data, list(range(5)))
    ridge(data, list(range(10, 26)))
    net(data, epochs=30)


if __name__ == "__main__":
    main()
