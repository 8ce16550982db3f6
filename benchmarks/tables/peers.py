"""Methods of others, written from their papers: one net, one loss each, settings of the suite.

MixBag (Asanomi, Matsuo, Suehiro, Bise 2023) adds mixtures of two bags, whose proportion is known up
to an interval. GenBags (Saket, Raghuveer, Ravindran 2022) fits random combinations of bags; here
with Gaussian weights that add up to zero instead of the paper's optimised covariance. MixBag and
DLLP of the package llp-learn are in `llp_learn_bridge.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

EPOCHS, RATE, INSTANCES, WIDTH = 100, 1e-3, 500, 100
QUANTILE = 2.58  # of the normal law, for an interval of 99 %


class Net:
    """A hidden layer with dropout, trained on batches of whole bags."""

    def __init__(self, X: np.ndarray, y: np.ndarray, bags: np.ndarray, seed: int) -> None:
        torch.manual_seed(seed)
        self.rng, self.scaler = np.random.default_rng(seed), StandardScaler().fit(X)
        self.X = self._tensor(X)
        order, sizes = np.argsort(bags, kind="stable"), np.bincount(bags)
        self.rows = np.split(order, np.cumsum(sizes)[:-1])
        self.proportions = torch.tensor([y[rows[0]] for rows in self.rows]).float()
        self.net = nn.Sequential(
            nn.Linear(X.shape[1], WIDTH), nn.ReLU(), nn.Dropout(0.5), nn.Linear(WIDTH, 1)
        )

    def fit(self, step: Callable[[Net, list[int]], Tensor]) -> Net:
        """Minimise what `step` makes of a batch of bags, given by number."""
        optimizer, n_bags = torch.optim.Adam(self.net.parameters(), lr=RATE), len(self.rows)
        per_batch = min(n_bags, max(4, round(INSTANCES * n_bags / len(self.X))))
        for _ in range(EPOCHS):
            for batch in np.array_split(self.rng.permutation(n_bags), n_bags // per_batch):
                optimizer.zero_grad()
                step(self, list(batch)).backward()
                optimizer.step()
        self.net.eval()
        return self

    def means(self, groups: list[np.ndarray]) -> Tensor:
        """Mean score of each group of rows."""
        scores = self.net(self.X[np.concatenate(groups)]).squeeze(-1).sigmoid()
        return torch.stack([part.mean() for part in scores.split([len(g) for g in groups])])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            positive = self.net(self._tensor(X)).squeeze(-1).sigmoid().numpy()
        return np.stack([1 - positive, positive], axis=1)

    def _tensor(self, X: np.ndarray) -> Tensor:
        return torch.tensor(self.scaler.transform(X), dtype=torch.float32)


def cross_entropy(means: Tensor, proportions: Tensor) -> Tensor:
    """Of each bag's proportion and mean score."""
    return nn.functional.binary_cross_entropy(means.clamp(0, 1), proportions, reduction="none")


def mixbag(X: np.ndarray, y: np.ndarray, bags: np.ndarray, seed: int) -> Net:
    """Cross entropy of bags, and of mixtures of two where the mean score leaves the interval."""
    return Net(X, y, bags, seed).fit(_mixbag_step)


def _mixbag_step(net: Net, batch: list[int]) -> Tensor:
    plain = cross_entropy(net.means([net.rows[i] for i in batch]), net.proportions[batch])
    mixed, centres, widths = [], [], []
    for one, two in zip(batch, np.roll(batch, 1), strict=True):
        rows, centre, variance = _mixture(net, int(one), int(two))
        mixed.append(rows)
        centres.append(centre)
        widths.append(QUANTILE * variance**0.5)
    means, wanted = net.means(mixed), torch.tensor(centres).float()
    outside = (means - wanted).abs() > torch.tensor(widths).float()
    return plain.mean() + (outside * cross_entropy(means, wanted)).mean()


def _mixture(net: Net, one: int, two: int) -> tuple[np.ndarray, float, float]:
    """Rows drawn from two bags, their expected proportion, and its variance."""
    share, drawn, centre, variance = net.rng.uniform(), [], 0.0, 0.0
    size = min(len(net.rows[one]), len(net.rows[two]))
    counts = [max(1, round(share * size)), max(1, round((1 - share) * size))]
    for bag, count in zip((one, two), counts, strict=True):
        weight, p = count / sum(counts), float(net.proportions[bag])
        drawn.append(net.rng.choice(net.rows[bag], count, replace=False))
        centre, variance = centre + weight * p, variance + weight**2 * p * (1 - p) / count
    return np.concatenate(drawn), centre, variance


def genbags(X: np.ndarray, y: np.ndarray, bags: np.ndarray, seed: int) -> Net:
    """Squares of random combinations of the counts' residuals."""
    return Net(X, y, bags, seed).fit(_genbags_step)


def _genbags_step(net: Net, batch: list[int]) -> Tensor:
    sizes = torch.tensor([len(net.rows[i]) for i in batch]).float()
    residuals = sizes * (net.means([net.rows[i] for i in batch]) - net.proportions[batch])
    weights = torch.tensor(net.rng.normal(size=(len(batch), len(batch)))).float()
    weights = weights - weights.mean(dim=1, keepdim=True)
    # A little of the mean, which such weights leave out.
    return (weights @ residuals).square().mean() / sizes.sum() + residuals.mean().square()
