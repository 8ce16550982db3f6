"""Milliseconds per training step and trial on a GPU, beside a plain eager loop in the same run.

    PYTHONPATH=src python benchmarks/gpu_steps.py [--csv FILE]

MNIST shapes, minibatches of 1000 instances (10 bags of 100), the default rule. The eager loop is
one trial in plain torch: forward, loss, backward, `torch.optim.Adam`. The engine trains as the
reproduction does: dense nets stacked, convolutional nets side by side. Also checks the fused
convolutions against plain ones, stops where compiled code differs from plain code, and projects the
paper's protocol.
"""

import argparse
import csv
import time
import warnings

import numpy as np
import torch
from torch.nn.functional import conv2d, max_pool2d

from unbag import BagBatch, make_bags
from unbag.engine import Settings, Trial
from unbag.engine.batches import as_inputs, trial_data
from unbag.engine.loop import run_epoch, torch_switches
from unbag.engine.stack import Stack
from unbag.errors import CompilationWarning
from unbag.models import MODELS
from unbag.rules import DebiasedSquare

SHAPE = (1, 28, 28)
N_INSTANCES = 20_000
# model: trials at once, precision
RUNS = {
    "linear": (100, "tf32"),
    "mlp100": (100, "tf32"),
    "mlp1000": (50, "tf32"),
    "cnn_small": (8, "bfloat16"),
    "cnn_padded": (8, "bfloat16"),  # the larger of the two large ones
}
# 5 rates x 10 seeds x 3 bag sizes x 5 rules, 100 epochs of 60 (MNIST) and 50 (CIFAR) steps
TRAININGS = 5 * 10 * 3 * 5
STEPS = 100 * (60 + 50)


def random_images(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 256, size=(N_INSTANCES, *SHAPE), dtype=np.uint8)
    return torch.from_numpy(X).cuda(), rng.integers(0, 2, size=N_INSTANCES)


def eager_loop(name, X, y, n_steps):
    net = MODELS[name](SHAPE, 1).cuda()
    optimizer = torch.optim.Adam(net.parameters(), eps=1e-7)
    rule = DebiasedSquare()
    rows = torch.randint(len(X), (n_steps, 1000), device="cuda")
    proportions = torch.rand(n_steps, 10, device="cuda")

    def run():
        for r, a in zip(rows, proportions, strict=True):
            optimizer.zero_grad()
            rule(net(as_inputs(X[r])).squeeze(-1), BagBatch(a, 100)).backward()
            optimizer.step()

    return seconds(run) / n_steps


def engine(name, X, y, n_epochs=3):
    n_trials, precision = RUNS[name]
    settings = Settings(device="cuda", precision=precision, compile=True, bags_per_batch=10)
    trials = [Trial(seed=seed) for seed in range(n_trials)]
    bags = [make_bags(X, y, bag_size=100, seed=t.seed) for t in trials]
    data = [trial_data(t, b, bags_per_batch=10) for t, b in zip(trials, bags, strict=True)]
    together = "cnn" not in name
    groups = [list(range(n_trials))] if together else [[i] for i in range(n_trials)]
    with torch_switches(settings):
        stacks = [
            Stack([trials[i] for i in g], [data[i] for i in g], X, MODELS[name], settings)
            for g in groups
        ]
        run_epoch(stacks, [], 0)
        run_epoch(stacks, [], 1)
        run = lambda: [run_epoch(stacks, [], epoch) for epoch in range(2, 2 + n_epochs)]  # noqa: E731
        return seconds(run) / (n_epochs * len(stacks[0].batches) * n_trials)


def seconds(run):
    run()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - begun


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
    from unbag.models.kernels import fused_convolution

    x = torch.rand(n, inputs, side, side, device=device).bfloat16().float()
    x = x.requires_grad_(inputs > 3)
    weight = torch.randn(outputs, inputs, 3, 3, device=device).bfloat16().float().requires_grad_()
    bias = torch.randn(outputs, device=device, requires_grad=True)
    value = fused_convolution(x, weight, bias, pad, pool).float()
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
    arguments = parser.parse_args()
    warnings.simplefilter("error", CompilationWarning)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"fused convolutions: relative error {check_fused_convolution():.1e}")
    X, y = random_images()
    rows = []
    for name in RUNS:
        eager = 1e3 * eager_loop(name, X, y, n_steps=60)
        ours = 1e3 * engine(name, X, y)
        hours = TRAININGS * STEPS * ours / 3.6e6
        rows.append((name, eager, ours, hours, TRAININGS * STEPS * eager / 3.6e6))
        print(f"{name:10s} eager {eager:7.3f} ms  engine {ours:7.4f} ms  {eager / ours:6.1f} x")
    total = [sum(row[i] for row in rows) for i in (3, 4)]
    print(f"paper protocol, both tables: {total[0]:.1f} h, eager loop {total[1]:.1f} h")
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["model", "eager_ms", "engine_ms", "engine_hours", "eager_hours"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
