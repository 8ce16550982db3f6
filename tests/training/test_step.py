"""Which steps are captured for a GPU."""

from contextlib import contextmanager

import pytest
import torch

from unbag.training.batches import Batch
from unbag.training.step import GraphedStep


class Watched(GraphedStep):
    """Notes what it would capture, where there is no GPU."""

    def __init__(self, step):
        super().__init__(step)
        self.captured = []

    def _capture(self, batch):
        self.captured.append(batch.sizes)


@pytest.mark.parametrize(
    ("sizes", "captured"), [(3, True), (torch.tensor([1, 5]), False)], ids=["equal", "unequal"]
)
def test_only_steps_on_equal_bags_are_captured(sizes, captured):
    """Unequal sizes are read back to the host, which must not happen in a capture."""
    seen = []
    step = Watched(seen.append)
    batch = Batch(torch.arange(6)[None], torch.zeros(1, 2), None, sizes)
    for _ in range(4):
        step(batch)
    assert seen == [batch] * 4
    assert bool(step.captured) == captured


def test_a_step_is_captured_on_the_stream_that_is_current(monkeypatch):
    """Graphs that are captured on one stream share memory, and could not run side by side."""
    streams = []

    @contextmanager
    def graph(graph, stream=None):
        streams.append(stream)
        yield

    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "its own")
    step = GraphedStep(lambda batch: None, warm_up=1)
    step(Batch(torch.arange(6)[None], torch.zeros(1, 2), None, 3))
    assert streams == ["its own"]
