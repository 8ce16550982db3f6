"""Residual nets for small images: ResNet-18 and wide ResNets, with normalisation first."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import relu


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut."""

    def __init__(self, n_inputs: int, n_outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(n_inputs)
        self.conv1 = nn.Conv2d(n_inputs, n_outputs, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_outputs)
        self.conv2 = nn.Conv2d(n_outputs, n_outputs, 3, 1, 1, bias=False)
        same = stride == 1 and n_inputs == n_outputs
        self.shortcut = None if same else nn.Conv2d(n_inputs, n_outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the convolutions make of the input to it."""
        ready = relu(self.norm1(x))
        beside = x if self.shortcut is None else self.shortcut(ready)
        return beside + self.conv2(relu(self.norm2(self.conv1(ready))))


class ResNet(nn.Module):
    """Stages of residual blocks, each but the first halving the image, and a linear head.

    `widths` are the channels of the stages (he2016identity, zagoruyko2016wide).
    """

    def __init__(
        self, n_channels: int, n_outputs: int, *, widths: Sequence[int], n_blocks: int
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(n_channels, widths[0], 3, padding=1, bias=False)
        blocks, width = [], widths[0]
        for stage, wanted in enumerate(widths):
            for number in range(n_blocks):
                stride = 2 if stage and not number else 1
                blocks.append(ResidualBlock(width, wanted, stride))
                width = wanted
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, n_outputs)
        self.apply(_initialise)

    def features(self, x: Tensor) -> Tensor:
        """Average over positions of the last stage, shape (n, width)."""
        return relu(self.norm(self.blocks(self.stem(x)))).mean(dim=(-2, -1))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images (n, channels, height, width)."""
        return self.head(self.features(x))


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out")
    elif isinstance(module, nn.Linear):
        nn.init.zeros_(module.weight)  # every class alike, so that the first losses are calm
        nn.init.zeros_(module.bias)
