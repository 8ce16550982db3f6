"""Contrastive pretraining without labels: views of one image attract, others repel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from unbag.images.loop import Optimization, seeded_generator
from unbag.images.views import contrastive_view
from unbag.models.resnet import ResNet
from unbag.randomness import derive_seed
from unbag.training.batches import as_inputs
from unbag.training.progress import progress_bar

LEARNING_RATE, WEIGHT_DECAY = 0.5, 5e-4
TEMPERATURE = 0.2  # small ones look at the nearest images only


@dataclass(frozen=True)
class ContrastiveSettings:
    """Settings of `contrastive_start`."""

    n_epochs: int
    images_per_batch: int  # each other image of a batch is a negative example, so large is good


def contrastive_start(
    net: ResNet,
    images: Tensor,
    *,
    settings: ContrastiveSettings,
    flip: bool = True,
    seed: int = 0,
    progress: bool = False,
) -> None:
    """Train the features of a net in place, by images alone (chen2020simclr)."""
    generator = seeded_generator(images.device, seed, "contrastive")
    width = net.head.in_features
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "projector"))
        projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 128))
    model = nn.ModuleList([net, projector.to(images.device)]).train()
    n_batches = max(1, len(images) // settings.images_per_batch)
    n_steps = settings.n_epochs * n_batches
    optimization = Optimization(model, LEARNING_RATE, WEIGHT_DECAY, n_steps)
    with progress_bar("contrastive start", settings.n_epochs, show=progress) as tick:
        for _ in range(settings.n_epochs):
            order = torch.randperm(len(images), device=images.device, generator=generator)
            for rows in order.tensor_split(n_batches):
                x = as_inputs(images[rows])
                views = [contrastive_view(x, generator, flip=flip) for _ in range(2)]
                with optimization.precision():
                    points = projector(net.features(torch.cat(views)))
                optimization.step(contrastive_loss(points.float(), TEMPERATURE))
            tick(lambda: f"loss {optimization.last_loss:.3f}")


def contrastive_loss(points: Tensor, temperature: float) -> Tensor:
    """Cross entropy of finding each image's other view among first views, then second views."""
    points = normalize(points, dim=1)
    n = len(points) // 2
    similarity = points @ points.t() / temperature
    similarity.fill_diagonal_(-torch.inf)
    partner = torch.arange(2 * n, device=points.device).roll(n)
    return cross_entropy(similarity, partner)
