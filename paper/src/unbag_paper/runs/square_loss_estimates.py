"""Per-bag estimates of the square loss beside the truth, for the paper's Figure 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unbag.bags import Bags, make_bags
from unbag_paper.compiled.monitors import Monitor
from unbag_paper.data import Labelled
from unbag_paper.runs.monitors import logits_on, shared_monitors

__all__ = ["SNAPSHOT_EPOCH", "TestBags", "bag_estimates"]

SNAPSHOT_EPOCH = 10
"""Epochs after which the paper's histograms are drawn."""


def bag_estimates(scores: Tensor, proportions: Tensor, *, prior: float) -> dict[str, Tensor]:
    """Estimate each bag's mean square loss from its proportion, in three ways.

    Parameters
    ----------
    scores : Tensor of shape (..., n_bags, bag_size)
    proportions : Tensor of shape (n_bags,)
    prior : float
        Share of positive labels.

    Returns
    -------
    dict of str to Tensor of shape (..., n_bags)
        "EZ.Sq"; "DSQ", with the mean score over all bags; and "pairwise", with the products of a
        bag's residual with those of all others.

    Examples
    --------
    >>> found = bag_estimates(torch.full((4, 10), 0.5), torch.full((4,), 0.5), prior=0.5)
    >>> {name: values[0].item() for name, values in found.items()}
    {'EZ.Sq': 0.25, 'DSQ': 0.0, 'pairwise': 0.0}
    """
    n_bags, size = scores.shape[-2:]
    residuals = scores.mean(dim=-1) - proportions
    positive = size * (proportions - prior) + prior
    easy = positive * (1 - scores).square().mean(dim=-1)
    easy = easy + (1 - positive) * scores.square().mean(dim=-1)
    bias = (scores.mean(dim=(-1, -2), keepdim=True)[..., 0] - prior).square()
    others = (residuals.sum(dim=-1, keepdim=True) - residuals) / (n_bags - 1)
    return {
        "EZ.Sq": easy,
        "DSQ": size * residuals.square() - (size - 1) * bias,
        "pairwise": size * residuals.square() - (size - 1) * residuals * others,
    }


class TestBags:
    """The whole test set in bags, with its labels.

    Parameters
    ----------
    data : Labelled
    bag_size : int
    device : str
    """

    __test__ = False  # not a test of pytest's

    def __init__(self, data: Labelled, *, bag_size: int, device: str) -> None:
        bags: Bags = make_bags(
            data.X_test, data.y_test, bag_size=bag_size, seed=0, remainder="drop"
        )
        self.shape = (bags.n_bags, bag_size)
        self.X = torch.from_numpy(data.X_test[bags.rows]).to(device)
        self.labels = torch.from_numpy(data.y_test[bags.rows]).float().view(self.shape).to(device)
        self.proportions = self.labels.mean(dim=-1)
        self.prior = float(data.y_train.mean())

    def monitors(self) -> list[Monitor]:
        """The test error, the true square loss, and its three estimates."""
        measures: dict[str, Any] = {
            "test_error": lambda logits: self._wrong(logits).mean(dim=(-1, -2)),
            "true_square": lambda logits: self._truth(self._scores(logits)).mean(dim=-1),
        }
        for name in ("EZ.Sq", "DSQ", "pairwise"):
            measures[f"estimate {name}"] = lambda logits, name=name: self._estimate(logits, name)
        return shared_monitors(self.X, measures)

    def snapshot(self, model: nn.Module) -> dict[str, np.ndarray[Any, Any]]:
        """Per-bag losses and estimates of a trained model."""
        scores = self._scores(logits_on(model, self.X)[None])[0]
        found = {"bag truth": self._truth(scores)}
        estimates = bag_estimates(scores, self.proportions, prior=self.prior)
        found |= {f"bag {name}": values for name, values in estimates.items()}
        return {name: values.cpu().numpy() for name, values in found.items()}

    def _scores(self, logits: Tensor) -> Tensor:
        return logits.sigmoid().view(len(logits), *self.shape)

    def _wrong(self, logits: Tensor) -> Tensor:
        return ((self._scores(logits) > 0.5).float() != self.labels).float()

    def _truth(self, scores: Tensor) -> Tensor:
        return (scores - self.labels).square().mean(dim=-1)

    def _estimate(self, logits: Tensor, name: str) -> Tensor:
        found = bag_estimates(self._scores(logits), self.proportions, prior=self.prior)
        return found[name].mean(dim=-1)
