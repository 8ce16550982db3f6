"""Methods of the package llp-learn, which asks for an old torch: trained in another environment.

The environment variable `LLP_LEARN_PYTHON` names its interpreter; `llp_learn_worker.py` says what
the environment needs. Version 1.6.0 differs from the papers in two places: its DLLP averages the
logarithms of a bag's probabilities, and its MixBag widens the interval of the first of two bags by
the normal quantile twice.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.special import softmax
from sklearn.preprocessing import StandardScaler

INTERPRETER = "LLP_LEARN_PYTHON"
WORKER = Path(__file__).with_name("llp_learn_worker.py")


@dataclass(frozen=True)
class TrainedNet:
    """Layers of a net with rectified units, and the scale of its features."""

    scaler: StandardScaler
    weights: list[np.ndarray]
    biases: list[np.ndarray]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        values = self.scaler.transform(X)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = np.maximum(values @ weight.T + bias, 0)
        return softmax(values @ self.weights[-1].T + self.biases[-1], axis=1)


def llp_learn(name: str) -> Callable[[np.ndarray, np.ndarray, np.ndarray, int], TrainedNet]:
    """A method of the package by its name there."""

    def fit(X: np.ndarray, y: np.ndarray, bags: np.ndarray, seed: int) -> TrainedNet:
        scaler = StandardScaler().fit(X)
        proportions = np.bincount(bags, y) / np.bincount(bags)
        with TemporaryDirectory() as folder:
            given, found = Path(folder, "given.npz"), Path(folder, "found.npz")
            features = scaler.transform(X).astype(np.float32)
            rates = proportions.astype(np.float32)
            np.savez(given, X=features, bags=bags, proportions=rates, seed=seed)
            command = [os.environ[INTERPRETER], str(WORKER), name, str(given), str(found)]
            subprocess.run(command, check=True, capture_output=True)
            layers = dict(np.load(found))
        depths = range(len(layers) // 2)
        weights, biases = ([layers[f"{part}_{i}"] for i in depths] for part in ("weight", "bias"))
        return TrainedNet(scaler, weights, biases)

    return fit
