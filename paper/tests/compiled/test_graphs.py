"""Which steps are captured for a GPU."""

from contextlib import contextmanager

import pytest
import torch

from unbag.models import MODELS
from unbag.training import Trial
from unbag.training.adam import StackedAdam
from unbag.training.batches import Batch
from unbag.training.learners import Learner
from unbag.training.stack import Step
from unbag_paper.compiled.graphs import GraphedStep


class Watched(GraphedStep):
    """Notes what it would capture, where there is no GPU."""

    captured = ()

    def _capture(self, batch):
        self.captured = (*self.captured, batch.sizes)
        return super()._capture(batch)


@pytest.fixture
def step(monkeypatch):
    """A step that takes this machine for one with a GPU."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    learner = Learner(MODELS["linear"]((1,), 1))
    optimizer = StackedAdam(learner.parameters, torch.tensor([0.1]), stacked=False)
    step = Watched(
        learner, optimizer, [Trial()], torch.zeros(6, 1), torch.tensor([0.5]), task="binary"
    )
    step.captures = True
    return step


@pytest.mark.parametrize(
    ("sizes", "captured"), [(3, True), (torch.tensor([1, 5]), False)], ids=["equal", "unequal"]
)
def test_only_steps_on_equal_bags_are_captured(step, monkeypatch, sizes, captured):
    """Unequal sizes are read back to the host, which must not happen in a capture."""
    seen = []
    monkeypatch.setattr(Step, "__call__", lambda step, batch: seen.append(batch))
    monkeypatch.setattr(GraphedStep, "_capture", lambda step, batch: None)
    batch = Batch(torch.arange(6)[None], torch.zeros(1, 2), None, sizes)
    for _ in range(3):
        step(batch)
    assert seen == [batch] * 3
    assert bool(step.captured) == captured


def test_a_step_is_captured_on_the_stream_that_is_current(step, monkeypatch):
    """Graphs that are captured on one stream share memory, and could not run side by side."""
    streams = []

    @contextmanager
    def graph(graph, stream=None):
        streams.append(stream)
        yield

    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "its own")
    step.warm_up = 1
    step(Batch(torch.arange(6)[None], torch.zeros(1, 2), None, 3))
    assert streams == ["its own"]
