"""What a trial records after each epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unbag.bags import make_bags
from unbag.randomness import numpy_generator
from unbag.training.batches import as_inputs
from unbag_paper.compiled.monitors import Monitor, held_out_risk
from unbag_paper.data import Labelled

__all__ = [
    "HELD_OUT_BAG_SIZE",
    "error_monitors",
    "held_out_half",
    "labelled_error",
    "logits_on",
    "shared_monitors",
]

# Half of a test set of 10,000 makes five bags of 1000, too few to select by; 50 of 100 will do.
HELD_OUT_BAG_SIZE = 100


def shared_monitors(X: Any, measures: dict[str, Any]) -> list[Monitor]:
    """Monitors of one set of instances, which share one forward pass."""
    return [Monitor(name, X, measure) for name, measure in measures.items()]


def held_out_half(n_instances: int) -> np.ndarray[Any, Any]:
    """Rows of the half of the test set that serves as held-out bags; the same for every trial."""
    order = numpy_generator("test set", "halves").permutation(n_instances)
    return np.sort(order[: n_instances // 2])


def error_monitors(data: Labelled, *, bag_size: int, device: str) -> list[Monitor]:
    """Test errors, and the label-free risk that learning rate and epoch can be chosen by.

    The test set is cut in two halves. Bags of the first (of `bag_size`, but at most 100, instances)
    give `held_out_error` and `held_out_square`, the pairwise debiased estimates of 0-1 error and
    square loss, which see no label; `second_half_error` is the error on the other half, and
    `test_error` on the whole test set.
    """
    n_test = len(data.y_test)
    first = held_out_half(n_test)
    second = np.setdiff1d(np.arange(n_test), first)
    size = min(bag_size, HELD_OUT_BAG_SIZE, len(first) // 2)
    bags = make_bags(data.X_test[first], data.y_test[first], bag_size=size, seed=0)
    order = np.concatenate([first[bags.rows], second])
    X = torch.from_numpy(data.X_test[order]).to(device)
    labels = torch.from_numpy(data.y_test[order]).bool().to(device)
    cut = len(first)
    zero_one = held_out_risk(bags, criterion="zero_one").measure
    square = held_out_risk(bags, criterion="square").measure
    measures = {
        "test_error": lambda logits: _error(logits, labels),
        "second_half_error": lambda logits: _error(logits[:, cut:], labels[cut:]),
        "held_out_error": lambda logits: zero_one(logits[:, :cut]),
        "held_out_square": lambda logits: square(logits[:, :cut]),
    }
    return shared_monitors(X, measures)


def labelled_error(X: Any, y: Any, *, name: str = "test_error") -> Monitor:
    """Share of wrong hard predictions on labelled instances."""
    given = np.asarray(y)
    if given.shape not in [(len(X),), (len(X), 1)]:
        raise ValueError(
            f"y must have one label an instance, {len(X)} in all, got an array of shape "
            f"{given.shape}. With several classes, pass the number of each instance's class."
        )
    labels = torch.as_tensor(given.reshape(-1))

    def measure(logits: Tensor) -> Tensor:
        binary = logits.shape[-1] == 1
        predicted = logits.squeeze(-1) > 0 if binary else logits.argmax(dim=-1)
        return (predicted != labels.to(logits.device, non_blocking=True)).float().mean(dim=-1)

    return Monitor(name, X, measure)


@torch.no_grad()
def logits_on(model: Any, X: Tensor, *, chunk: int = 2000) -> Tensor:
    """Logits of a trained net on instances, where these are."""
    model = model.to(X.device).eval()
    return torch.cat([model(as_inputs(x)) for x in X.split(chunk)])


def _error(logits: Tensor, labels: Tensor) -> Tensor:
    return ((logits.squeeze(-1) > 0) != labels).float().mean(dim=-1)
