"""What could explain a distance to the paper's numbers: the bags drawn, weights, pixels, batches.

    python paper/benchmarks/fidelity.py --store paper/results/rows
    python paper/benchmarks/fidelity.py --data DIR --model linear --bag-size 1000 --seeds 10

The first reads finished trainings with bags drawn for each seed: how much the best error varies
with the partition, how much of that two rules share, and what a mean of minima gives in place of
the minimum of the mean.
The second trains the paper's rules on MNIST once as the tables do, and once for each thing that the
paper leaves open and we might have wrong. Learning rate and epoch are chosen on the test set, as in
the paper. What it really was, its code told later: `unbag-paper mnist --exact`.
"""

import argparse
import math
from collections import defaultdict
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from unbag import make_bags
from unbag.models.nets import Dense
from unbag.rules import get_rule
from unbag.training import Trial
from unbag_paper.compiled import EngineSettings, train
from unbag_paper.data import load_problem
from unbag_paper.runs.monitors import labelled_error
from unbag_paper.runs.rows import read_rows
from unbag_paper.runs.selection import best_by_test, index_rows

RATES = (0.01, 0.005, 0.001, 0.0005, 0.0001)
RULES = ("easy_log", "easy_square", "proportion_log", "proportion_square")


def keras(weight, bias):
    nn.init.xavier_uniform_(weight)
    nn.init.zeros_(bias)


def torch_default(weight, bias):
    bound = 1 / math.sqrt(weight.shape[1])
    nn.init.uniform_(weight, -bound, bound)
    nn.init.uniform_(bias, -bound, bound)


def lecun(weight, bias):
    nn.init.normal_(weight, std=1 / math.sqrt(weight.shape[1]))
    nn.init.zeros_(bias)


def zero(weight, bias):
    nn.init.zeros_(weight)
    nn.init.zeros_(bias)


class Pixels(nn.Module):
    """Centre and scale all pixels alike."""

    def __init__(self, centre, scale):
        super().__init__()
        self.centre, self.scale = centre, scale

    def forward(self, x):
        return (x.flatten(1) - self.centre) / self.scale


def net(input_shape, n_outputs, *, width, start=keras, centre=0.0, scale=1.0):
    """The paper's linear or two-layer net, with other first weights or pixels."""
    sizes = [math.prod(input_shape), *([width] if width else []), n_outputs]
    layers = [Dense(*pair) for pair in pairwise(sizes)]
    for layer in layers:
        start(layer.weight, layer.bias)
    hidden = [module for layer in layers[:-1] for module in (layer, nn.ReLU())]
    return nn.Sequential(Pixels(centre, scale), *hidden, layers[-1])


# name: options of the net, options of the training
VARIANTS = {
    "as in the tables": ({}, {}),
    "torch's own first weights": ({"start": torch_default}, {}),
    "Lecun's first weights": ({"start": lecun}, {}),
    "weights start at zero": ({"start": zero}, {}),
    "pixels of mean 0, deviation 1": ({"centre": 0.1307, "scale": 0.3081}, {}),
    "other batches each epoch": ({}, {"redraw": True}),
    "batches of 5000 instances": ({}, {"n_instances": 5000}),
}


def curves(data, name, arguments):
    """Test error in percent of each rule and rate: (seeds, epochs)."""
    net_options, options = VARIANTS[name]
    width = 0 if arguments.model == "linear" else int(arguments.model[3:])
    rules = [get_rule(rule) for rule in arguments.rules.split(",")]
    settings = EngineSettings(
        max_epochs=arguments.epochs,
        bags_per_batch=max(1, options.get("n_instances", 1000) // arguments.bag_size),
        redraw=options.get("redraw", False),
    )
    found = defaultdict(list)
    for seed in range(arguments.seeds):
        bags = make_bags(data.X_train, data.y_train, bag_size=arguments.bag_size, seed=seed)
        trials = [Trial(rule, rate, seed) for rule in rules for rate in RATES]
        monitor = labelled_error(data.X_test, data.y_test)
        model = partial(net, width=width, **net_options)
        for result in train(trials, bags, model=model, monitors=[monitor], settings=settings):
            key = result.trial.rule.name, result.trial.learning_rate
            found[key].append(100 * result.history["test_error"])
    return {key: np.array(each) for key, each in found.items()}


def print_variants(arguments):
    data = load_problem("mnist", folder=arguments.data)
    names = [n for n in VARIANTS if arguments.only in n]
    for name in names:
        found = curves(data, name, arguments)
        for rule in arguments.rules.split(","):
            each = {rate: found[rule, rate] for rate in RATES}
            rate = min(each, key=lambda rate: each[rate].mean(axis=0).min())
            epoch = each[rate].mean(axis=0).argmin()
            errors = each[rate][:, epoch]
            spread = errors.std(ddof=1) / math.sqrt(len(errors))
            print(
                f"{arguments.model} k={arguments.bag_size} {rule:18s} {name:30s} "
                f"{errors.mean():6.2f} ± {spread:.2f} % at rate {rate}, epoch {epoch + 1}",
                flush=True,
            )


def print_rows(path):
    best = {}
    for cell, found in index_rows(read_rows(path)).items():
        rate, _ = best_by_test(found)
        of_a_table = cell.rule in (*RULES, "debiased_square") and cell.measures == "errors"
        drawn = cell.conditions == "ours" and not cell.teacher and cell.bags_per_batch
        if of_a_table and drawn and len(found.seeds(rate)) > 2:
            rows = [found.rows[rate, seed].arrays["test_error"] for seed in found.seeds(rate)]
            best[cell] = 100 * np.array(rows)
    for cell, errors in best.items():
        epoch = errors.mean(axis=0).argmin()
        each, minima = errors[:, epoch], errors.min(axis=1)
        print(
            f"{cell.dataset} {cell.model} k={cell.bag_size} {cell.rule} {cell.options}"
            f"{' redrawn' if cell.redraw else ''}: "
            f"minimum of the mean {each.mean():.2f}, mean of minima {minima.mean():.2f}, "
            f"deviation over {len(each)} partitions {each.std(ddof=1):.2f}, "
            f"range {each.min():.2f} to {each.max():.2f}"
        )
    print_shared(best)


def print_shared(best):
    """Correlation over partitions of the errors of two rules, for each net and bag size."""
    groups = defaultdict(dict)
    for cell, errors in best.items():
        if len(errors) == 10:
            epoch = errors.mean(axis=0).argmin()
            groups[cell.dataset, cell.model, cell.bag_size][cell.rule] = errors[:, epoch]
    for group, rules in groups.items():
        if {"easy_log", "easy_square"} <= rules.keys():
            together = np.corrcoef(rules["easy_log"], rules["easy_square"])[0, 1]
            print(f"{group}: EZ.Log and EZ.Sq correlate by {together:.2f} over partitions")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", help="a folder of rows")
    parser.add_argument("--data", help="folder that holds the files of MNIST")
    parser.add_argument("--model", default="linear", choices=["linear", "mlp100", "mlp1000"])
    parser.add_argument("--bag-size", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--only", default="", help="variants whose name holds this")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.store:
        print_rows(arguments.store)
    if arguments.data:
        print_variants(arguments)


if __name__ == "__main__":
    main()
