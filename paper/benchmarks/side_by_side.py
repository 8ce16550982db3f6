"""Convolutional nets that share a GPU train as if each had it to itself.

    python paper/benchmarks/side_by_side.py [--rounds 3] [--csv FILE]

Random images, eight trials of each net by one rule: in turn, then side by side on streams of their
own, several times. Losses are compared bit by bit. Batches of several thousand instances are where
an engine whose graphs shared a workspace (before 1975617) went wrong; set PYTHONPATH to the
sources of an older commit to compare.
"""

import argparse
import csv
from dataclasses import replace

import numpy as np
import torch

from unbag import make_bags
from unbag.rules import ProportionSquare
from unbag.training import Trial
from unbag_paper.compiled import EngineSettings, train

SHAPES = ((1, 28, 28), (3, 32, 32))
NETS = ("cnn_small", "cnn_small_plain", "cnn_large", "cnn_padded", "cnn_large_plain")
BATCHES = (1, 5)  # bags of 1000
N_INSTANCES, BAG_SIZE, N_TRIALS, EPOCHS = 20_000, 1000, 8, 6


def random_bags(shape, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 256, size=(N_INSTANCES, *shape), dtype=np.uint8)
    y = X.mean(axis=(1, 2, 3)) > np.median(X.mean(axis=(1, 2, 3)))  # there is something to learn
    return make_bags(torch.from_numpy(X).cuda(), y, bag_size=BAG_SIZE, seed=seed)


def losses(net, bags, settings):
    trials = [Trial(ProportionSquare(), 0.001, seed) for seed in range(N_TRIALS)]
    results = train(trials, bags, model=net, settings=settings)
    return np.stack([result.history["loss"] for result in results])


def compare(net, bags, bags_per_batch, n_rounds):
    together = EngineSettings(
        max_epochs=EPOCHS, bags_per_batch=bags_per_batch, device="cuda", precision="bfloat16",
        compile=True, side_by_side=N_TRIALS,
    )  # fmt: skip
    alone = losses(net, bags, replace(together, side_by_side=1))
    rounds = np.stack([losses(net, bags, together) for _ in range(n_rounds)])
    same = (rounds == alone).all(axis=-1)
    return int(same.sum()), int((~np.isfinite(rounds).all(axis=-1)).sum()), same.size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv")
    arguments = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    rows = [("image", "net", "instances", "trainings", "identical", "not_finite")]
    for shape in SHAPES:
        bags = random_bags(shape)
        for net in NETS:
            for size in BATCHES:
                same, bad, n = compare(net, bags, size, arguments.rounds)
                rows.append(("x".join(map(str, shape)), net, size * BAG_SIZE, n, same, bad))
                print(*rows[-1])
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            csv.writer(file).writerows(rows)
    if any(same < n for *_, n, same, _ in rows[1:]):
        raise SystemExit("Some trainings came out otherwise than alone.")


if __name__ == "__main__":
    main()
