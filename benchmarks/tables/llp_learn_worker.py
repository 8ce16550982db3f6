"""Train a method of the package llp-learn, in an environment of its own.

    pip install torch numpy scipy scikit-learn tqdm
    pip install --no-deps llp-learn==1.6.0
    python llp_learn_worker.py METHOD INPUT.npz OUTPUT.npz

The input holds ``X``, ``bags``, ``proportions`` and ``seed``; the output the weights of each layer.
`predict` of the package gives labels only, hence the weights.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import torch

SETTINGS: dict[str, Any] = {
    "lr": 1e-3,
    "n_epochs": 100,
    "model_type": "simple-mlp",
    "hidden_layer_sizes": (100,),
    "device": "cpu",
    "n_jobs": 0,
}
# Mixtures as in the paper, with the quantile of an interval of 99 %.
MIXTURES = {"choice": "uniform", "confidence_interval": 0.005, "consistency": "none"}


def without_torchvision() -> None:
    """Let the package import its networks for images, which are not used here."""
    package, models = ModuleType("torchvision"), ModuleType("torchvision.models")
    models.resnet18 = None  # type: ignore[attr-defined]
    sys.modules.update({"torchvision": package, "torchvision.models": models})


def make_method(name: str, seed: int) -> Any:
    """DLLP or MixBag with the settings that the suite's own peers have."""
    if name == "DLLP":
        from llp_learn.dllp import DLLP

        return DLLP(**SETTINGS, random_state=seed)
    from llp_learn.mixbag import MixBag

    return MixBag(**SETTINGS, **MIXTURES, random_state=seed)


def main(name: str, source: str, target: str) -> None:
    torch.set_num_threads(1)
    without_torchvision()
    given = np.load(source)
    method = make_method(name, int(given["seed"]))
    method.fit(given["X"], given["bags"], given["proportions"])
    layers = [layer for layer in method.model.layers if hasattr(layer, "weight")]
    weights = {f"weight_{i}": layer.weight.detach().numpy() for i, layer in enumerate(layers)}
    biases = {f"bias_{i}": layer.bias.detach().numpy() for i, layer in enumerate(layers)}
    np.savez(target, **weights, **biases)


if __name__ == "__main__":
    main(*sys.argv[1:])
