"""What learning from bags costs beside ordinary supervised training, on the same net and batches.

    python benchmarks/loss_overhead.py [--shape digits|mnist]

Times, in one run and interleaved so that the machine's mood is shared: a plain supervised loop in
eager torch (binary cross entropy, `torch.optim.Adam`), the engine with `debiased_square` on one
trial, and the engine with 8 stacked trials. Prints milliseconds a step and the ratios, and as a
floor the matrix products of 8 trials alone. The net has 100 hidden units; a batch holds 1000
instances in 10 bags.
"""

import argparse
import time

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from unbag import make_bags
from unbag.models import MODELS
from unbag.training import Settings, Trial
from unbag.training.batches import trial_data
from unbag.training.stack import Stack

FEATURES = {"digits": 64, "mnist": 784}
BAG_SIZE, BAGS_PER_BATCH, N_BATCHES = 100, 10, 20


def supervised(X, y):
    """One epoch of the loop everybody writes."""
    net = MODELS["mlp100"]((X.shape[1],), 1)
    optimizer = torch.optim.Adam(net.parameters())
    labels = torch.tensor(y, dtype=torch.float32)
    order = torch.randperm(len(X)).split(BAG_SIZE * BAGS_PER_BATCH)

    def epoch():
        for rows in order:
            optimizer.zero_grad()
            loss = binary_cross_entropy_with_logits(net(X[rows]).squeeze(-1), labels[rows])
            loss.backward()
            optimizer.step()

    return epoch


def engine(X, y, *, n_trials):
    """One epoch of this library's loop."""
    trials = [Trial(seed=seed) for seed in range(n_trials)]
    bags = [make_bags(X, y, bag_size=BAG_SIZE, seed=t.seed) for t in trials]
    data = [
        trial_data(t, b, Settings(bags_per_batch=BAGS_PER_BATCH))
        for t, b in zip(trials, bags, strict=True)
    ]
    stack = Stack(trials, data, X, MODELS["mlp100"], Settings())
    return lambda: stack.run_epoch(1)


def products(X, *, n_trials):
    """The matrix products of an epoch and nothing else: what stacking cannot save."""
    n, width = BAG_SIZE * BAGS_PER_BATCH, 100
    x = X[:n].expand(n_trials, -1, -1)
    weight, hidden = torch.rand(n_trials, X.shape[1], width), torch.rand(n_trials, n, width)

    def epoch():
        for _ in range(N_BATCHES):
            torch.bmm(x, weight)
            torch.bmm(x.mT, hidden)

    return epoch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=FEATURES, action="append")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    for shape in arguments.shape or FEATURES:
        rng = np.random.default_rng(0)
        n = BAG_SIZE * BAGS_PER_BATCH * N_BATCHES
        X = torch.from_numpy(rng.random((n, FEATURES[shape]), dtype=np.float32))
        y = rng.integers(0, 2, size=n)
        runs = {
            "supervised loop": supervised(X, y),
            "one trial": engine(X, y, n_trials=1),
            "8 stacked trials": engine(X, y, n_trials=8),
            "products of 8": products(X, n_trials=8),
        }
        times = {name: [] for name in runs}
        for _ in range(arguments.rounds + 1):
            for name, epoch in runs.items():
                begun = time.perf_counter()
                epoch()
                times[name].append((time.perf_counter() - begun) / N_BATCHES * 1e3)
        best = {name: np.median(values[1:]) for name, values in times.items()}
        print(f"{shape}: " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in best.items()))
        print(
            f"{shape}: one trial / supervised {best['one trial'] / best['supervised loop']:.2f}, "
            f"8 stacked / one trial {best['8 stacked trials'] / best['one trial']:.2f}, "
            f"products of 8 alone / one trial {best['products of 8'] / best['one trial']:.2f}"
        )


if __name__ == "__main__":
    main()
