"""Cost of the posterior of several classes, as ratios to one softmax of the same scores.

    python benchmarks/posterior.py

Prints and writes benchmarks/results/posterior.md: processor time and largest memory, each divided
by that of `torch.softmax` on the same double-precision scores in the same run. `exact` is what
`class_posterior` does in small bags, `tilted` is Newton's method to 1e-9, `loose` to 1e-3 as in
training on images.
"""

import time
import tracemalloc
from functools import partial
from pathlib import Path

import torch

from unbag import BagBatch
from unbag.posterior.classes import class_posterior, is_small, tilted_classes

OUTPUT = Path(__file__).parent / "results" / "posterior.md"
# Bag size, classes, bags.
CELLS = [(4, 3, 256), (16, 3, 64), (16, 10, 64), (64, 3, 16), (64, 10, 64), (256, 10, 16)]
CELLS += [(1024, 10, 8), (1024, 100, 2)]


def problem(bag_size, n_classes, n_bags):
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(n_bags * bag_size, n_classes, generator=generator).double()
    labels = torch.distributions.Categorical(logits=logits)
    torch.manual_seed(0)
    one_hot = torch.nn.functional.one_hot(labels.sample(), n_classes).double()
    shares = one_hot.unflatten(0, (n_bags, bag_size)).mean(dim=1)
    return logits, BagBatch(shares, bag_size, task="multiclass")


def processor_time(function, repeats):
    begun = time.process_time()
    for _ in range(repeats):
        function()
    return (time.process_time() - begun) / repeats


def line(bag_size, n_classes, n_bags):
    logits, batch = problem(bag_size, n_classes, n_bags)
    plain = processor_time(lambda: logits.softmax(dim=-1), 200)
    ways = {
        "exact": partial(class_posterior, logits, batch),
        "tilted": partial(tilted_classes, logits, batch),
        "loose": partial(tilted_classes, logits, batch, tolerance=1e-3),
    }
    counts = (bag_size * batch.targets).round().long().numpy()
    share = sum(map(is_small, counts)) / n_bags
    ratios = [f"{processor_time(way, 3) / plain:.0f}" for way in ways.values()]
    text = [bag_size, n_classes, n_bags, f"{share:.0%}", *ratios, f"{peak(ways['exact'], logits)}"]
    return "| " + " | ".join(map(str, text)) + " |"


def peak(function, logits):
    """Memory of numpy's arrays at most, in multiples of the scores' own."""
    tracemalloc.start()
    function()
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{largest / (8 * logits.numel()):.1f}"


def main():
    torch.set_num_threads(1)
    lines = [line(*cell) for cell in CELLS]
    page = PAGE.format(lines="\n".join(lines))
    print(page)
    OUTPUT.write_text(page)


PAGE = """# Cost of the posterior of several classes

Written by `python benchmarks/posterior.py`, one thread. Times are processor times divided by that
of one softmax of the same scores in the same run. `class_posterior` is exact in the bags that have
few vectors of counts and tilts in the others; its memory is that of the exact laws, in multiples
of the scores' own.

| bags of | classes | bags | exact | `class_posterior` | tilted, 1e-9 | tilted, 1e-3 | memory |
|---|---|---|---|---|---|---|---|
{lines}
"""

if __name__ == "__main__":
    main()
