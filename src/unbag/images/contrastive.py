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

__all__ = ["ContrastiveSettings", "contrastive_loss", "contrastive_start"]


@dataclass(frozen=True)
class ContrastiveSettings:
    """How the start is trained.

    Attributes
    ----------
    n_epochs : int
        Passes over the images.
    images_per_batch : int
        Every other image of a batch is a negative example, so large is good.
    learning_rate, weight_decay : float
        Of stochastic gradient descent with momentum.
    temperature : float
        Small ones look at the nearest images only.
    """

    n_epochs: int = 200
    images_per_batch: int = 1024
    learning_rate: float = 0.4
    weight_decay: float = 1e-4
    temperature: float = 0.2


def contrastive_start(
    net: ResNet,
    images: Tensor,
    *,
    settings: ContrastiveSettings | None = None,
    flip: bool = True,
    seed: int = 0,
    progress: bool = False,
) -> None:
    """Train the features of a net in place, by images alone.

    Parameters
    ----------
    net : ResNet
        On the device of the images.
    images : Tensor of shape (n, channels, height, width)
        Bytes, or floats in [0, 1].
    settings : ContrastiveSettings, optional
    flip : bool
        Whether an image may be mirrored.
    seed : int
        Of views and batches.
    progress : bool
        Whether to show a bar.

    References
    ----------
    chen2020simclr
    """
    settings = settings or ContrastiveSettings()
    generator = seeded_generator(images.device, seed, "contrastive")
    width = net.head.in_features
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "projector"))
        projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 128))
    model = nn.ModuleList([net, projector.to(images.device)]).train()
    n_batches = max(1, len(images) // settings.images_per_batch)
    optimization = Optimization(
        model, settings.learning_rate, settings.weight_decay, settings.n_epochs * n_batches
    )
    with progress_bar("contrastive start", settings.n_epochs, show=progress) as tick:
        for _ in range(settings.n_epochs):
            order = torch.randperm(len(images), device=images.device, generator=generator)
            for rows in order.tensor_split(n_batches):
                x = as_inputs(images[rows])
                views = [contrastive_view(x, generator, flip=flip) for _ in range(2)]
                with optimization.precision():
                    points = projector(net.features(torch.cat(views)))
                optimization.step(contrastive_loss(points.float(), settings.temperature))
            tick(lambda: f"loss {optimization.last_loss:.3f}")


def contrastive_loss(points: Tensor, temperature: float) -> Tensor:
    r"""Cross entropy of finding an image's other view among all views of a batch.

    Parameters
    ----------
    points : Tensor of shape (2 n, n_dimensions)
        First views of all images, then second views.
    temperature : float

    Examples
    --------
    >>> apart = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> contrastive_loss(apart.repeat(2, 1), 0.1) < 1e-3
    tensor(True)
    """
    points = normalize(points, dim=1)
    n = len(points) // 2
    similarity = points @ points.t() / temperature
    similarity.fill_diagonal_(-torch.inf)
    partner = torch.arange(2 * n, device=points.device).roll(n)
    return cross_entropy(similarity, partner)
