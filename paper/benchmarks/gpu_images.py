"""Milliseconds of each part of a training step on bags of images, on a GPU.

    python paper/benchmarks/gpu_images.py [--net resnet18] [--batches 512,1024] [--bags 16,256]

Random images of the shape of CIFAR-10. A part is the median over repetitions, by device events.
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from unbag import BagBatch
from unbag.images import LoopSettings
from unbag.images.contrastive import contrastive_loss
from unbag.images.loop import Learner
from unbag.images.views import contrastive_view, strong_view, weak_view
from unbag.models import get_model
from unbag.posterior.classes import tilted_classes

DEVICE, N_CLASSES = torch.device("cuda"), 10
REPETITIONS, WARM_UP = 20, 5


def milliseconds(part: Callable[[], object]) -> float:
    """Median time of a part on the device."""
    for _ in range(WARM_UP):
        part()
    times = []
    for _ in range(REPETITIONS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        part()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return float(np.median(times))


def learner(name: str, *, compiled: bool) -> Learner:
    """A net that can make steps, without a schedule to run out of."""
    net = get_model(name)((3, 32, 32), N_CLASSES).to(DEVICE)
    own = Learner(net.to(memory_format=torch.channels_last), LoopSettings(), n_steps=10**6)
    own.net = torch.compile(own.net) if compiled else own.net
    return own


def step(own: Learner, x: torch.Tensor) -> None:
    """Forward, backward, descent and average of a plain loss."""
    own.step(own(x).logsumexp(dim=1).mean())


def bags_of(size: int, n_images: int) -> tuple[torch.Tensor, BagBatch]:
    """Predictions of a good net, and the proportions of bags."""
    labels = torch.randint(N_CLASSES, (n_images,), device=DEVICE)
    one_hot = torch.nn.functional.one_hot(labels, N_CLASSES).float()
    shares = one_hot.view(-1, size, N_CLASSES).mean(dim=1)
    logits = 4 * one_hot + 2 * torch.randn_like(one_hot)
    return logits, BagBatch(shares, size, task="multiclass")


def rows(name: str, batch: int, sizes: list[int]) -> list[tuple[str, float]]:
    """Parts and their milliseconds for batches of this many images."""
    x = torch.rand(batch, 3, 32, 32, device=DEVICE).contiguous(memory_format=torch.channels_last)
    generator = torch.Generator(DEVICE).manual_seed(0)
    points = torch.randn(2 * batch, 128, device=DEVICE, requires_grad=True)
    parts: list[tuple[str, Callable[[], object]]] = [
        (view.__name__, partial(view, x, generator))
        for view in (weak_view, strong_view, contrastive_view)
    ]
    parts.append(("contrastive loss", lambda: contrastive_loss(points, 0.2).backward()))
    for size in sizes:
        logits, bags = bags_of(size, batch)
        parts.append(
            (f"tilt, bags of {size}", partial(tilted_classes, logits, bags, tolerance=1e-3))
        )
    twice = torch.cat([x, x])
    for compiled in (False, True):
        own = learner(name, compiled=compiled)
        how = "compiled" if compiled else "eager"
        parts += [
            (f"step on one view, {how}", partial(step, own, x)),
            (f"step on two views, {how}", partial(step, own, twice)),
        ]
    return [(title, milliseconds(part)) for title, part in parts]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--net", default="resnet18")
    parser.add_argument("--batches", default="512,1024")
    parser.add_argument("--bags", default="16,256")
    wanted = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    sizes = [int(size) for size in wanted.bags.split(",")]
    for batch in map(int, wanted.batches.split(",")):
        print(f"{wanted.net}, batches of {batch} on {torch.cuda.get_device_name()}")
        for title, time in rows(wanted.net, batch, sizes):
            print(f"  {title:<36} {time:8.2f} ms")


if __name__ == "__main__":
    main()
