"""What a linear net reaches on MNIST, odd against even, when every label is known.

    python paper/benchmarks/mnist_labels.py --data DIR

Bags of one are labels. The same nets, batches of 1000, 100 epochs and learning rates as the paper's
tables, so that a linear row of those can be held against it. As there, learning rate and epoch are
chosen on the test set.
"""

import argparse

import numpy as np

from unbag import make_bags
from unbag.rules import ProportionLog, ProportionSquare
from unbag.training import Trial
from unbag_paper.compiled import EngineSettings, train
from unbag_paper.data import load_problem
from unbag_paper.runs.monitors import labelled_error

RATES = (0.01, 0.005, 0.001, 0.0005, 0.0001)
LOSSES = {"square loss": ProportionSquare(), "log loss": ProportionLog()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="folder that holds the files")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    data = load_problem("mnist", folder=arguments.data)
    settings = EngineSettings(max_epochs=100, bags_per_batch=1000)
    curves = {}
    for seed in range(arguments.seeds):
        bags = make_bags(data.X_train, data.y_train, bag_size=1, seed=seed)
        trials = [Trial(rule, rate, seed) for rule in LOSSES.values() for rate in RATES]
        monitor = labelled_error(data.X_test, data.y_test)
        for found in train(trials, bags, model="linear", monitors=[monitor], settings=settings):
            key = found.trial.rule, found.trial.learning_rate
            curves.setdefault(key, []).append(100 * found.history["test_error"])
    for name, rule in LOSSES.items():
        means = {rate: np.mean(curves[rule, rate], axis=0) for rate in RATES}
        rate = min(means, key=lambda rate: means[rate].min())
        epoch = means[rate].argmin()
        each = [curve[epoch] for curve in curves[rule, rate]]
        spread = np.std(each, ddof=1) / np.sqrt(len(each))
        found = f"{np.mean(each):.2f} ± {spread:.2f} %"
        print(f"{name}: {found} at learning rate {rate}, epoch {epoch + 1}")


if __name__ == "__main__":
    main()
