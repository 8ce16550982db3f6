"""Milliseconds per training step and trial on a GPU, beside a plain eager loop in the same run.

    python paper/benchmarks/gpu_steps.py [--csv FILE] [--models linear,cnn_small]

Random images of the shapes of MNIST and CIFAR-10, minibatches of 1000 instances (10 bags of 100).
The eager loop is one trial in plain torch with the default rule: forward, loss, backward,
`torch.optim.Adam`. The engine trains as the reproduction does: dense nets stacked, convolutional
nets side by side. Also checks the fused convolutions against plain ones, and stops where compiled
code differs from plain code. The projection of the paper's protocol is by trainings as
`unbag-paper` runs them: with bags drawn, data of full size, all measures after every epoch and what
comes before and after. They take few epochs and more, the faster of two each, which gives what 100
take; bags of 100, DSQ, and PM.Sq where a stack holds more than DSQ's trials. Compilation, once a
process, is left out.
"""

import argparse
import csv
import time
import warnings
from dataclasses import replace

import numpy as np
import torch
from torch.nn.functional import conv2d, max_pool2d

from unbag import BagBatch, make_bags
from unbag.models.nets import Convolution
from unbag.rules import DebiasedSquare
from unbag.training import Trial
from unbag.training.batches import as_inputs
from unbag_paper.compiled import CompiledTraining, EngineSettings
from unbag_paper.data import Labelled
from unbag_paper.errors import CompilationWarning
from unbag_paper.kernels import fused_convolution
from unbag_paper.nets import NETS
from unbag_paper.runs.grid import load_grids
from unbag_paper.runs.trainer import Trainer

DEVICE = "cuda"
N_INSTANCES = 20_000  # for steps
# data set: shape, training instances
PROBLEMS = {"mnist": ((1, 28, 28), 60_000), "cifar": ((3, 32, 32), 50_000)}
N_TEST = 10_000
FEW_EPOCHS = 5
# net: precision, and how many epochs more a second training takes, to tell what one does
RUNS = {
    "linear": ("tf32", 100),
    "mlp100": ("tf32", 100),
    "mlp1000": ("tf32", 40),
    "cnn_small": ("bfloat16", 20),
    "cnn_large": ("bfloat16", 20),
}
PADDED = {"mnist": "cnn_padded"}  # the larger of the two large ones
TRAININGS = 5 * 10 * 3 * 5  # rates, seeds, bag sizes and rules, for each net and data set
PAPER_EPOCHS = 100
COLUMNS = (
    "data", "model", "eager_ms", "engine_ms", "setup_s", "epoch_ms", "device", "engine_hours",
    "eager_hours",
)  # fmt: skip


def random_images(shape, n=N_INSTANCES, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 256, size=(n, *shape), dtype=np.uint8)
    return X, rng.integers(0, 2, size=n).astype(np.uint8)


def eager_loop(name, X, n_steps):
    net = NETS[name](tuple(X.shape[1:]), 1).to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), eps=1e-7)
    rule = DebiasedSquare()
    rows = torch.randint(len(X), (n_steps, 1000), device=DEVICE)
    proportions = torch.rand(n_steps, 10, device=DEVICE)

    def run():
        for r, a in zip(rows, proportions, strict=True):
            optimizer.zero_grad()
            rule(net(as_inputs(X[r])).squeeze(-1), BagBatch(a, 100)).backward()
            optimizer.step()

    return seconds(run) / n_steps


def engine(name, X, y, grid, precision, n_epochs=3):
    """Seconds of a step of one trial, among as many as the reproduction trains at once."""
    together = "cnn" not in name
    settings = EngineSettings(device=DEVICE, precision=precision, compile=True, bags_per_batch=10)
    n_trials = grid.stack_size(name, DEVICE) if together else settings.side_by_side
    trials = [Trial(seed=seed) for seed in range(n_trials)]
    bags = [make_bags(X, y, bag_size=100, seed=t.seed) for t in trials]
    training = CompiledTraining(trials, bags, model=name, settings=settings)
    training.run(until=2)
    epochs = iter((2 + n_epochs, 2 + 2 * n_epochs))  # `seconds` runs twice, and times the second
    each = n_epochs * len(training.stacks[0].batches) * n_trials
    return seconds(lambda: training.run(until=next(epochs))) / each


def random_problem(dataset):
    shape, n = PROBLEMS[dataset]
    return Labelled(dataset, *random_images(shape, n), *random_images(shape, N_TEST, seed=1))


def whole_training(name, grid, data, precision, more):
    """Seconds of a trial before and after its epochs, and of one epoch, among others at once."""
    cells = [c for c in grid.cells() if c.model == name and c.bag_size == 100 and c.rule.published]
    trials = [
        cell.trial(rate, seed, data.fingerprint)
        for cell in reversed(cells)
        for seed in cell.seeds
        for rate in cell.learning_rates
    ][: grid.stack_size(name, DEVICE)]
    settings = {"precision": precision, "compile": True}
    trainer = Trainer({data.name: data}, device=DEVICE, settings=settings)

    def spent(epochs):
        begun = time.perf_counter()
        trainer([replace(trial, epochs=epochs) for trial in trials])
        wait()
        return time.perf_counter() - begun

    spent(2)
    short, long = (min(spent(n), spent(n)) for n in (FEW_EPOCHS, FEW_EPOCHS + more))
    each = (long - short) / more
    return (short - FEW_EPOCHS * each) / len(trials), each / len(trials)


def seconds(run):
    run()
    wait()
    begun = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - begun


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


# channels in and out, padding, pooling, side of the image
CONVOLUTIONS = (
    (1, 32, 0, 2, 28),
    (1, 32, 1, 1, 28),
    (3, 32, 0, 2, 32),
    (3, 32, 1, 1, 32),
    (32, 32, 0, 2, 28),
    (32, 64, 0, 2, 13),
    (32, 64, 1, 1, 15),
    (64, 64, 0, 2, 13),
    (32, 64, 0, 2, 5),  # three rows, of which one is left out
)


def check_fused_convolution():
    """Relative error of value and gradients against float32 layers on the same rounded numbers."""
    return max(relative_error(*layer) for layer in CONVOLUTIONS)


def relative_error(inputs, outputs, pad, pool, side, n=64, device="cuda"):
    x = torch.rand(n, inputs, side, side, device=device).bfloat16().float()
    x = x.requires_grad_(inputs > 3)
    layer = Convolution(inputs, outputs, padding=pad, pool=pool).to(device)
    weight, bias = layer.weight, layer.bias
    with torch.no_grad():
        weight.copy_(torch.randn_like(weight).bfloat16())
        bias.copy_(torch.randn_like(bias))
    with torch.autocast("cuda", torch.bfloat16):
        value = fused_convolution(layer, x)
    value = value.float()
    wanted = conv2d(x, weight, padding=pad)
    if inputs > 3:  # cuDNN's product is rounded before a maximum is taken
        wanted = wanted + (wanted.bfloat16().float() - wanted).detach()
    wanted = (wanted + bias[:, None, None]).relu()
    wanted = max_pool2d(wanted, pool) if pool > 1 else wanted
    cotangent = torch.randn_like(wanted)
    wrt = (weight, bias, x) if inputs > 3 else (weight, bias)
    found = torch.autograd.grad((value * cotangent).sum(), wrt)
    right = torch.autograd.grad((wanted * cotangent).sum(), wrt)
    pairs = [(value, wanted), *zip(found, right, strict=True)]
    return max(((a - b).norm() / b.norm()).item() for a, b in pairs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv")
    parser.add_argument("--models", default=",".join(RUNS))
    arguments = parser.parse_args()
    warnings.simplefilter("error", CompilationWarning)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"fused convolutions: relative error {check_fused_convolution():.1e}")
    rows = []
    for dataset in PROBLEMS:
        for row in measure(dataset, arguments.models.split(",")):
            rows.append(row)
            write(arguments.csv, rows)
    hours, eager_hours = (sum(row[i] for row in rows) for i in (-2, -1))
    print(
        f"paper protocol, both tables, {len(rows) * TRAININGS:,} trainings: {hours:.1f} h, "
        f"steps of the eager loop alone {eager_hours:.1f} h"
    )


def write(path, rows):
    if path:
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])


def measure(dataset, nets):
    """A row of the table for each net: steps, eager and ours, and what a whole training takes."""
    shape, n = PROBLEMS[dataset]
    X, y = random_images(shape)
    X, data = torch.from_numpy(X).to(DEVICE), random_problem(dataset)
    [grid] = load_grids(dataset)
    for net in nets:
        precision, more = RUNS[net]
        name = PADDED.get(dataset, net) if net == "cnn_large" else net
        eager = eager_loop(name, X, n_steps=60)
        ours = engine(name, X, y, grid, precision)
        setup, epoch = whole_training(name, grid, data, precision, more)
        whole = setup + PAPER_EPOCHS * epoch
        eager_hours = TRAININGS * PAPER_EPOCHS * (n // 1000) * eager / 3600
        print(
            f"{dataset:5s} {name:10s} ms a step: eager {1e3 * eager:7.3f}, engine {1e3 * ours:7.4f}"
            f" ({eager / ours:5.1f} x); {whole:.3f} s a training: {1e3 * epoch:.2f} ms an epoch and"
            f" {setup:.3f} s besides",
            flush=True,
        )
        about = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
        hours = TRAININGS * whole / 3600
        yield dataset, name, 1e3 * eager, 1e3 * ours, setup, 1e3 * epoch, about, hours, eager_hours


if __name__ == "__main__":
    main()
