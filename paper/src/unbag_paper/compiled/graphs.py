"""Training steps captured as CUDA graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unbag.training.batches import Batch
from unbag.training.stack import Step

__all__ = ["GraphedStep"]


class GraphedStep(Step):
    """On a GPU, a step captured once per batch shape and replayed without the host.

    Capture needs a stream other than the default one to be current. Sizes that differ are read back
    to the host, which no capture allows: such batches run eagerly.
    """

    warm_up = 3

    def __init__(self, *parts: Any, **options: Any) -> None:
        super().__init__(*parts, **options)
        self.graphs: dict[object, tuple[torch.cuda.CUDAGraph, Batch]] = {}
        self.eager_calls = 0
        self.captures = self.X.is_cuda

    def __call__(self, batch: Batch) -> None:
        """Replay the captured step; a batch of a new shape is run eagerly, then captured."""
        if not self.captures or not isinstance(batch.sizes, int):
            super().__call__(batch)
            return
        key = (*(tuple(tensor.shape) for tensor in _tensors(batch)), batch.sizes)
        if key not in self.graphs:
            self.eager_calls += 1
            super().__call__(batch)
            if self.eager_calls >= self.warm_up:
                self.graphs[key] = self._capture(batch)
            return
        graph, static = self.graphs[key]
        for held, given in zip(_tensors(static), _tensors(batch), strict=True):
            held.copy_(given)
        graph.replay()

    def _capture(self, batch: Batch) -> tuple[torch.cuda.CUDAGraph, Batch]:
        """On the stack's own stream: graphs captured on one stream share cuBLAS's workspace."""
        noise = None if batch.noise_variance is None else batch.noise_variance.clone()
        static = Batch(batch.rows.clone(), batch.proportions.clone(), noise, batch.sizes)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            super().__call__(static)
        return graph, static


def _tensors(batch: Batch) -> list[Tensor]:
    """What changes from step to step."""
    given = [batch.rows, batch.proportions, batch.noise_variance]
    return [tensor for tensor in given if tensor is not None]
