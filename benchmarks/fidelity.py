"""What explains a distance to the paper's numbers: the bags drawn, weights, pixels, batches.

    python benchmarks/fidelity.py --rows results/rows.sqlite
    python benchmarks/fidelity.py --data DIR --model linear --bag-size 1000 --only authors
    python benchmarks/fidelity.py --data DIR --model linear --bag-size 1000

The first reads finished trainings: how much the best error varies with the partition into bags, how
much of that two rules share, and what a mean of minima gives in place of the minimum of the mean.
The others train the paper's rules once as the tables do, and once for each thing that the paper
leaves open. The code that the paper names (github.com/GXLI97/llp_experiments) settles three of
them: the large CNN has no padding (so "cnn_large", not "cnn_padded"), MNIST is enlarged to 32 x 32
pixels, and all seeds share one partition and its batches, whose order `authors_order.py` has
written down. The last two are the variant "authors". Learning rate and epoch are chosen on the test
set, as in the paper.
"""

import argparse
import math
from collections import defaultdict
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import interpolate

from unbag.bags import as_bags, make_bags
from unbag.datasets import load_problem
from unbag.engine import Settings, Trial, labelled_error, train
from unbag.experiments.published import published_error
from unbag.experiments.selection import best_by_test, index_rows
from unbag.experiments.store import read_rows
from unbag.models import MODELS
from unbag.models.nets import Dense
from unbag.rules import get_rule

RATES = (0.01, 0.005, 0.001, 0.0005, 0.0001)
# the paper's names, the rules and their options
RULES = {
    "EZ.Log": ("easy_log", {}),
    "EZ.Sq": ("easy_square", {}),
    "PM.Log": ("proportion_log", {}),
    "PM.Sq": ("proportion_square", {}),
    "DSQ": ("debiased_square", {"debias": "moving", "beta": 0.99}),
}
WIDTHS = {"linear": 0, "mlp100": 100, "mlp1000": 1000}
CHECKS = Path(__file__).parent.parent / "results" / "checks"


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


def builder(model, **options):
    """How to build a model; convolutional ones have no options."""
    return partial(net, width=WIDTHS[model], **options) if model in WIDTHS else MODELS[model]


# name: options of the net, options of the training
VARIANTS = {
    "as in the tables": ({}, {}),
    "as the authors' code": ({}, {"authors": True}),
    "torch's own first weights": ({"start": torch_default}, {}),
    "Lecun's first weights": ({"start": lecun}, {}),
    "weights start at zero": ({"start": zero}, {}),
    "pixels of mean 0, deviation 1": ({"centre": 0.1307, "scale": 0.3081}, {}),
    "other batches each epoch": ({}, {"redraw": True}),
    "batches of 5000 instances": ({}, {"n_instances": 5000}),
}


def as_drawn(data, arguments):
    """Each seed with its own bags, as the tables have them; and how to measure a net."""
    each = [
        ([seed], make_bags(data.X_train, data.y_train, bag_size=arguments.bag_size, seed=seed))
        for seed in range(arguments.seeds)
    ]
    return each, labelled_error(data.X_test, data.y_test)


def as_authors(data, arguments):
    """All seeds with one partition, on images of 32 x 32 pixels; and how to measure a net."""
    order = np.load(CHECKS / f"authors_order_{data.name}.npy").astype(int)
    ids = np.arange(len(order)) // arguments.bag_size
    labels = data.y_train[order]
    proportions = labels.reshape(-1, arguments.bag_size).mean(axis=1)[ids]
    bags = as_bags(enlarged(data.X_train)[order], proportions, bags=ids)
    return [(range(arguments.seeds), bags)], labelled_error(enlarged(data.X_test), data.y_test)


def enlarged(images):
    pixels = torch.from_numpy(images).float() / 255
    return interpolate(pixels, size=(32, 32), mode="bilinear").numpy()


def curves(data, name, arguments):
    """Test error in percent of each rule and rate: (seeds, epochs)."""
    net_options, options = VARIANTS[name]
    authors = options.get("authors", False)
    groups, monitor = (as_authors if authors else as_drawn)(data, arguments)
    settings = Settings(
        max_epochs=arguments.epochs,
        bags_per_batch=max(1, options.get("n_instances", 1000) // arguments.bag_size),
        shuffle=not authors,
        redraw=options.get("redraw", False),
        device=arguments.device,
        precision=arguments.precision,
        compile=arguments.device != "cpu",
    )
    labels = {make_rule(label): label for label in arguments.rules.split(",")}
    model = builder(arguments.model, **net_options)
    found = defaultdict(list)
    for seeds, bags in groups:
        trials = [Trial(rule, rate, seed) for rule in labels for rate in RATES for seed in seeds]
        for result in train(trials, bags, model=model, monitors=[monitor], settings=settings):
            key = labels[result.trial.rule], result.trial.learning_rate
            found[key].append(100 * result.history["test_error"])
    return {key: np.array(each) for key, each in found.items()}


def make_rule(label):
    name, options = RULES[label]
    return get_rule(name, **options)


def print_variants(arguments):
    data = load_problem(arguments.dataset, folder=arguments.data)
    for name in (name for name in VARIANTS if arguments.only in name):
        found = curves(data, name, arguments)
        for rule in arguments.rules.split(","):
            each = {rate: found[rule, rate] for rate in RATES}
            rate = min(each, key=lambda rate: each[rate].mean(axis=0).min())
            epoch = each[rate].mean(axis=0).argmin()
            errors = each[rate][:, epoch]
            spread = errors.std(ddof=1) / math.sqrt(len(errors))
            cell = arguments.dataset, arguments.bag_size, arguments.model, rule
            print(
                f"{cell[0]} {cell[2]} k={cell[1]} {rule:7s} {name:30s} {errors.mean():6.2f} "
                f"± {spread:.2f} % at rate {rate}, epoch {epoch + 1}; "
                f"the paper {published_error(*cell)}",
                flush=True,
            )


def print_rows(path):
    best = {}
    for cell, found in index_rows(read_rows(path)).items():
        rate, _ = best_by_test(found)
        if cell.rule in {name for name, _ in RULES.values()} and len(found.seeds(rate)) > 2:
            rows = [found.rows[rate, seed].arrays["test_error"] for seed in found.seeds(rate)]
            best[cell] = 100 * np.array(rows)
    for cell, errors in best.items():
        epoch = errors.mean(axis=0).argmin()
        each, minima = errors[:, epoch], errors.min(axis=1)
        print(
            f"{cell.dataset} {cell.model} k={cell.bag_size} {cell.rule} {cell.options}: "
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
    parser.add_argument("--rows", help="a store of finished trainings")
    parser.add_argument("--data", help="folder that holds the files of the data set")
    parser.add_argument("--dataset", default="mnist", choices=["mnist", "cifar"])
    parser.add_argument("--model", default="linear", choices=MODELS)
    parser.add_argument("--bag-size", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--only", default="", help="variants whose name holds this")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.rows:
        print_rows(arguments.rows)
    if arguments.data:
        print_variants(arguments)


if __name__ == "__main__":
    main()
